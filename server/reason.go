package server

// Reason is why a server ends a client's connection.
type Reason int

// The reasons.
const (
	ReasonClosed       Reason = iota // the session was closed, by its client
	ReasonExpired                    // the session has expired
	ReasonMoved                      // the session's client has another connection
	ReasonNoLeader                   // this server has lost touch with a majority
	ReasonStopping                   // this server stops
	ReasonReset                      // this server's state was replaced by a snapshot
	ReasonOutbox                     // the client does not read its replies
	ReasonHalted                     // this server no longer takes part in the ensemble
	ReasonReadOnlyOver               // read-only mode is over
	ReasonShed                       // an administrator wants fewer clients here
	ReasonOverdue                    // a request has waited for longer than the session's timeout
)

// String names the reason in logs.
func (r Reason) String() string {
	return [...]string{
		"session closed", "session expired", "session moved", "no contact with a leader",
		"server stopping", "state restored from a snapshot", "client does not read", "server halted",
		"read-only mode is over", "shed by an administrator",
		"a request has waited for too long",
	}[r]
}
