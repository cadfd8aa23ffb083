package config

func backupRows(s *Settings) []setting {
	return []setting{
		{key: "backup.directory", kind: kindText, to: &s.Backup.Directory,
			help: "Directory into which one server of the ensemble, now this one, now that, writes a verified " +
				"backup at intervals; it may be shared."},
		{key: "backup.command", kind: kindSecret, to: &s.Backup.Command,
			help: "Command for /bin/sh that gets the backup on standard input instead, and its name in " +
				"`ZK_LITE_BACKUP`. It may encrypt and upload."},
		{key: "backup.interval", kind: kindMillis, def: "24h", min: 1000, max: 365 * day, to: &s.Backup.Interval,
			help: "Time between two backups."},
		{key: "backup.timeout", kind: kindMillis, def: "1h", min: 1000, max: day, to: &s.Backup.Timeout,
			help: "Time after which a backup has failed, and its command is ended."},
		{key: "backup.keepCount", kind: kindInt, def: "14", min: 0, max: maxInt, to: &s.Backup.KeepCount,
			help: "Backups that are kept in the directory; 0 is all."},
		{key: "backup.keepAge", kind: kindMillis, def: "0", min: 0, max: 3650 * day, to: &s.Backup.KeepAge,
			help: "Age from which on a backup is removed from the directory, except the newest; 0 is never."},
	}
}

func (l *loader) resolveBackup() {
	b := &l.s.Backup
	if b.Directory != "" && b.Command != "" {
		l.fail(l.where("backup-command"), "backup.command", "is set besides backup.directory",
			"set one of them: a command gets the backup instead of the directory")
	}
	if b.Timeout > b.Interval && l.given("backup-timeout") {
		l.fail(l.where("backup-timeout"), "backup.timeout", "is longer than backup.interval",
			"want at most the interval, "+b.Interval.String())
	}
	b.Timeout = min(b.Timeout, b.Interval)
}
