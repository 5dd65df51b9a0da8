//! Golden bytes of the ledger format, and bytes that no writer makes.
