"""The command line. A verb's module is imported when the verb is used, and its dependencies when it runs."""
