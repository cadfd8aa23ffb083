package app

import (
	"os/user"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/server/audit"
)

// auditLog starts the audit log; nil if there is none.
func auditLog(o *Options) *audit.Log {
	c := &o.Settings.Audit
	if !c.Enabled {
		return nil
	}
	l := audit.Open(audit.Config{
		File: c.File, JSON: c.Format == config.LoggerJSON, MaxBytes: int(c.MaxBytes), Keep: c.Keep, Logger: o.Logger,
	})
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
