/* origin/sql.h - the SQL files of this folder, as built into the program. */
#ifndef ORIGIN_SQL_H
#define ORIGIN_SQL_H

extern const char org_sql_schema[];
extern const char org_sql_stock[];
extern const char org_sql_sales[];
extern const char org_sql_duty[];
extern const char org_sql_grants[];

#endif
