/* Holds nothing: what a header is compiled alone with. */
