"""What other tools' job documents say, as job files of ours: `jobs import`."""
