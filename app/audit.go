package app

import (
	"os/user"

	"github.com/zk-lite/zk-lite/server/audit"
)

// auditLog starts the audit log; nil if there is none.
func auditLog(o *Options) *audit.Log {
	if !o.Settings.AuditEnabled {
		return nil
	}
	cfg := o.Settings.Audit
	cfg.Logger = o.Logger
	l := audit.Open(cfg)
	l.Note(audit.Client{}, audit.Event{User: processUser(), Operation: "serverStart", Result: audit.Success})
	return l
}

// processUser is the name of the user whom the process runs as.
func processUser() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}
