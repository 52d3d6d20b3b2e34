//! Plugins: programs of their own that give operations, kinds of steps and tools.
