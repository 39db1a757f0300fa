/* admission/sound.h - can what lies in a map be the work of this store?
 *
 * Asked by whoever opens a map alone, before anything in it is used: a disk
 * that lost pages, or somebody's hand, may have put anything there. Sound
 * means that every index is in range, every instant and number is one that
 * the store could have written, and accounts, turns and places name each
 * other. What a kill between two stores leaves is sound: a rebuild sets it
 * right. A wrong number that could be a right one is not found out.
 *
 * Units      ms of sale time.
 * Ownership  nothing is kept; faults are constant texts.
 * Context    alone in the map.
 */
#ifndef ADMISSION_SOUND_H
#define ADMISSION_SOUND_H

#include "admission/map.h"

/* The first fault, or NULL. `now_ms` may be the local clock: instants may be
 * a day ahead of it. */
const char *adm_sound_header(const struct adm_map_header *h, int64_t now_ms);

/* Before the rebuild: what a rebuild takes as given. */
const char *adm_sound_sale(const struct adm_map *m, uint32_t slot, int64_t now_ms);

/* After it: who names whom. */
const char *adm_sound_links(const struct adm_hall *l);

#endif
