"""The command line. A verb's module is imported when the verb is used, and what it needs when it runs."""
