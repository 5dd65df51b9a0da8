package oracle;

/** What a vector concentrates on. The first ones of each version are the corners, the rest is mixed at random. */
enum Style {
    /** Zero, empty and absent. */
    EMPTY,
    /** Null wherever the version allows it. */
    NULLS,
    /** Everything present, numbers at their limits. */
    EXTREMES,
    /** One or two strings or byte fields of a size at which a length prefix grows. */
    LARGE,
    /** Long arrays of plain numbers. */
    LONG_ARRAYS,
    /** Any of it. */
    MIXED;

    static Style of(int index) {
        return switch (index) {
            case 0 -> EMPTY;
            case 1 -> NULLS;
            case 2 -> EXTREMES;
            case 3, 4, 5, 6 -> LARGE;
            case 7 -> LONG_ARRAYS;
            default -> MIXED;
        };
    }
}
