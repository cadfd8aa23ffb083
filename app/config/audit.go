package config

// Audit says which audit log to keep.
type Audit struct {
	Enabled  bool
	File     string // AuditFile in the data directory unless set
	Format   string // LoggerText or LoggerJSON
	MaxBytes int64  // of a file before it is rotated
	Keep     int    // rotated files
}

// AuditFile is the name of the audit log unless it has another.
const AuditFile = "zookeeper_audit.log"

func auditRows() []setting {
	return []setting{
		{key: "audit.enable", kind: kindBool, def: "false",
			field: func(s *Settings) any { return &s.Audit.Enabled },
			help:  "Write an audit log: ZooKeeper's lines, failed logins, refused requests, what administrators do."},
		{key: "audit.file", kind: kindText,
			field: func(s *Settings) any { return &s.Audit.File },
			help:  "File of the audit log. Default: `dataDir/" + AuditFile + "`."},
		{key: "audit.format", kind: kindChoice, def: LoggerText, choices: []string{LoggerText, LoggerJSON},
			field: func(s *Settings) any { return &s.Audit.Format },
			help:  "Format of its lines: ZooKeeper's, or JSON."},
		{key: "audit.maxFileBytes", kind: kindBytes, def: "10MiB", min: 1 << 20, max: 1 << 40,
			field: func(s *Settings) any { return &s.Audit.MaxBytes },
			help:  "Size at which the file is rotated, in whole MiB."},
		{key: "audit.maxFiles", kind: kindInt, def: "10", min: 1, max: 10_000,
			field: func(s *Settings) any { return &s.Audit.Keep },
			help:  "Rotated files that are kept."},
	}
}
