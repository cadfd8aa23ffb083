package config

// AuditFile is the name of the audit log unless it has another.
const AuditFile = "zookeeper_audit.log"

func auditRows(s *Settings) []setting {
	return []setting{
		{key: "audit.enable", kind: kindBool, def: "false", to: &s.AuditEnabled,
			help: "Write an audit log: ZooKeeper's lines, failed logins, refused requests, what administrators do."},
		{key: "audit.file", kind: kindText, to: &s.Audit.File,
			help: "File of the audit log. Default: `dataDir/" + AuditFile + "`."},
		{key: "audit.format", kind: kindFormat, def: formatText, choices: []string{formatText, formatJSON},
			to:   &s.Audit.JSON,
			help: "Format of its lines: ZooKeeper's, or JSON."},
		{key: "audit.maxFileBytes", kind: kindBytes, def: "10MiB", min: 1 << 20, max: 1 << 40, to: &s.Audit.MaxBytes,
			help: "Size at which the file is rotated, in whole MiB."},
		{key: "audit.maxFiles", kind: kindInt, def: "10", min: 1, max: 10_000, to: &s.Audit.Keep,
			help: "Rotated files that are kept."},
	}
}
