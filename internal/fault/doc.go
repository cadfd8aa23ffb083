// Package fault makes the product break a promise on purpose, so that tests can show that they would
// notice. Without the build tag "faults" On is the constant false and the compiler leaves the broken
// branch out: nothing of it is in a normal binary.
//
// It decides nothing itself: tests switch on one fault at a time. It starts no goroutine and has no lock.
package fault

// Fault is one promise that is broken.
type Fault string

// The faults, each with the guarantee of docs/guarantees.md that it breaks.
const (
	// AckBeforeQuorum: a leader counts entries as stored by the followers when it has only begun
	// to send them (Durability, Replicas).
	AckBeforeQuorum Fault = "ack-before-quorum"
	// AckBeforeDisk: acknowledgements do not wait for the log's disk (Durability).
	AckBeforeDisk Fault = "ack-before-disk"
	// DropDedupe: the state machine applies commands that it has applied before (Once).
	DropDedupe Fault = "drop-dedupe"
	// ReadBeforeWrite: a read does not wait for its session's earlier writes (Order).
	ReadBeforeWrite Fault = "read-before-write"
	// WatchAfterReply: watches fire when an entry has been applied, after its replies (Events before
	// data).
	WatchAfterReply Fault = "watch-after-reply"
	// SkipEphemeral: the ephemerals of an expired session stay (Ephemerals).
	SkipEphemeral Fault = "skip-ephemeral"
	// ReuseSequence: a sequence number is that of the present children (Sequence numbers).
	ReuseSequence Fault = "reuse-sequence"
	// ForgetVote: a server that starts knows neither its term nor its vote (Majority, Durability).
	ForgetVote Fault = "forget-vote"
	// ExpireEarly: the leader's clock gives sessions a quarter of their timeout (Sessions).
	ExpireEarly Fault = "expire-early"
	// ForgetOwner: a session's old server may still write for it (Once, Order).
	ForgetOwner Fault = "forget-owner"
	// SyncWithoutLog: a sync does not go through the log (Linearizable writes).
	SyncWithoutLog Fault = "sync-without-log"
	// HalfMulti: a failed multi keeps the effects of its first operations (Atomicity).
	HalfMulti Fault = "half-multi"
	// IgnoreConditions: a branch carries out its first operations whatever its conditions are (Linearizable writes).
	IgnoreConditions Fault = "ignore-conditions"
	// ForgetRights: a write is done without regard to the client's rights (Permissions).
	ForgetRights Fault = "forget-rights"
	// ShortLife: a TTL znode lives a quarter of its time (Expiring znodes).
	ShortLife Fault = "short-life"
	// NeverReap: expired znodes are not removed (Expiring znodes).
	NeverReap Fault = "never-reap"
	// HideGap: a server whose state was replaced continues feeds from before (Resuming).
	HideGap Fault = "hide-gap"
)

// All lists the faults.
func All() []Fault {
	return []Fault{
		AckBeforeQuorum, AckBeforeDisk, DropDedupe, ReadBeforeWrite, WatchAfterReply, SkipEphemeral,
		ReuseSequence, ForgetVote, ExpireEarly, ForgetOwner, SyncWithoutLog, HalfMulti, IgnoreConditions,
		ForgetRights, ShortLife, NeverReap, HideGap,
	}
}
