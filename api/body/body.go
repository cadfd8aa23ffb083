// Package body has the bodies of the HTTP API that more than the server knows: types alone, for the server that
// writes them and the command line that reads them. docs/http.md and the server's OpenAPI document describe them; a
// test compares the document with these types.
//
// Ids of servers are -1 where none is known. Fields that are left out when they are empty are not known, or mean
// nothing there.
package body

import "time"

// Problem is why a request was not carried out: the members of RFC 9457, then ours.
type Problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Hint      string `json:"hint"` // what to do
	Name      string `json:"error,omitempty"`
	Code      int32  `json:"code,omitempty"` // ZooKeeper's, as Name is
	Path      string `json:"path,omitempty"`
	Parameter string `json:"parameter,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Cause     string `json:"cause,omitempty"`
	Failed    *int   `json:"failed,omitempty"` // of a transaction: the operation to blame
	Results   any    `json:"results,omitempty"`
}

// Cluster is the ensemble as a server sees it, with what its leader knows.
type Cluster struct {
	Ensemble string   `json:"ensemble"` // its id, in hexadecimal
	Members  []Member `json:"members"`
	Leader   int      `json:"leader"`
	Term     uint64   `json:"term"`
	// Level is the ensemble's feature level, HighestLevel the highest one that it could have; 0: not known.
	Level        int `json:"level"`
	HighestLevel int `json:"highest_level"`
	Voters       int `json:"voters"`
	// FailuresTolerated is how many voters may fail when all are up.
	FailuresTolerated int `json:"failures_tolerated"`
	// FailuresToleratedNow is how many more may fail now, as the leader reports; nil: it has not answered.
	FailuresToleratedNow *int `json:"failures_tolerated_now,omitempty"`
	// Incomplete is why the leader's knowledge is missing.
	Incomplete string `json:"incomplete,omitempty"`
	// Reconfiguring is what the leader does of a client's reconfig; empty: there is none.
	Reconfiguring string `json:"reconfiguring,omitempty"`
	Server        Server `json:"server"` // that answers
	// Mirror is what that server knows of the mirror; nil: there is none.
	Mirror *Mirror `json:"mirror,omitempty"`
}

// Member is a server of the ensemble.
type Member struct {
	ID     int    `json:"id"`
	Role   string `json:"role"` // leader, follower, observer or joining
	Peer   string `json:"peer,omitempty"`
	Client string `json:"client,omitempty"`
	HTTP   string `json:"http,omitempty"`
	// The release that it runs, and the lowest and highest feature level that it speaks.
	Version string `json:"version,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Levels  []int  `json:"levels,omitempty"`
	Key     string `json:"key,omitempty"` // the beginning of its fingerprint, in hexadecimal
	// What the leader knows of it; nil if no leader has answered.
	*Known
	// A new server's; nil: it needs none, or has one.
	*Token
}

// Known is how the leader knows a server.
type Known struct {
	Connected bool `json:"connected"`
	// The indexes are nil while it is not connected.
	LastIndex    *uint64 `json:"last_index,omitempty"`
	AppliedIndex *uint64 `json:"applied_index,omitempty"`
	Lag          *uint64 `json:"lag,omitempty"`
	LastContact  *string `json:"last_contact"` // null: never
	// Plan is what the leader will do with it by itself; nil: nothing.
	Plan *Plan `json:"plan,omitempty"`
}

// Plan is what the leader will do with a member.
type Plan struct {
	Action string `json:"action"` // promote or remove
	In     string `json:"in,omitempty"`
	Waits  string `json:"waits,omitempty"` // for what; empty: for the time alone
}

// Token is a one-time token with which a server joins.
type Token struct {
	Token string    `json:"token"`
	Until time.Time `json:"token_until"`
}

// Server is the server that answers.
type Server struct {
	ID           int     `json:"id"`
	Role         string  `json:"role"`
	Serving      bool    `json:"serving"`
	Draining     bool    `json:"draining"`
	LastIndex    uint64  `json:"last_index"`
	AppliedIndex uint64  `json:"applied_index"`
	LastContact  *string `json:"last_contact"` // null: never
	Pending      int     `json:"pending"`
	DiskFault    string  `json:"disk_fault,omitempty"`
}

// Servers are those that can be asked with ?server=, for clients that may not see how they are.
type Servers struct {
	Ensemble string      `json:"ensemble,omitempty"` // its id, in hexadecimal; empty: there is none yet
	Server   int         `json:"server"`             // that answers
	Servers  []ServerRow `json:"servers"`
	Election *Election   `json:"election,omitempty"`
}

// ServerRow is a server, and where others reach it.
type ServerRow struct {
	ID     int    `json:"id"`
	HTTP   string `json:"http,omitempty"`
	Client string `json:"client,omitempty"`
}

// Election is the last one since the start of the server that answers.
type Election struct {
	Leader   int       `json:"leader"`
	Term     uint64    `json:"term"`
	Ended    time.Time `json:"ended"`
	OutageMS float64   `json:"outage_ms"`
}

// Restored is what a restore has changed, in numbers of znodes.
type Restored struct {
	Zxid    string `json:"zxid"`
	Backup  string `json:"backup_zxid"`
	DryRun  bool   `json:"dry_run"`
	Created int    `json:"created"`
	Changed int    `json:"changed"`
	Deleted int    `json:"deleted"`
	Kept    int    `json:"kept_ephemerals"`
	Skipped int    `json:"skipped_ephemerals"`
}

// Newest is a page of the newest of something that a server remembers.
type Newest[T any] struct {
	Server      int      `json:"server"`
	LeadsTerm   uint64   `json:"leads_term,omitempty"`   // 0: it does not lead
	ThresholdMS *float64 `json:"threshold_ms,omitempty"` // of slow requests
	Items       []T      `json:"items"`                  // the newest first
	Next        uint64   `json:"next,omitempty"`         // before= of the next page; 0: this was the last
}

// SlowRequest is a request that was slow.
type SlowRequest struct {
	ID          uint64             `json:"id"`
	At          time.Time          `json:"at"`
	Port        string             `json:"port"`
	Operation   string             `json:"operation"`
	Path        string             `json:"path,omitempty"`
	Session     string             `json:"session,omitempty"`
	Address     string             `json:"address"`
	Traceparent string             `json:"traceparent,omitempty"`
	TookMS      float64            `json:"took_ms"`
	StagesMS    map[string]float64 `json:"stages_ms"`
	Index       uint64             `json:"index,omitempty"`
	Term        uint64             `json:"term,omitempty"`
	ProcessorMS float64            `json:"processor_wait_ms"`
	Changed     bool               `json:"leader_changed"`
	Cause       string             `json:"cause"`
}

// SlowEntry is an entry of the log that was slow.
type SlowEntry struct {
	ID       uint64             `json:"id"`
	At       time.Time          `json:"at"`
	Index    uint64             `json:"index"`
	Term     uint64             `json:"term"`
	StagesMS map[string]float64 `json:"stages_ms"`
}

// ExpiredSession is a session that has expired, and what the server knows of why.
type ExpiredSession struct {
	ID         uint64    `json:"id"`
	At         time.Time `json:"at"`
	Session    string    `json:"session"`
	TimeoutMS  float64   `json:"timeout_ms"`
	Server     int       `json:"server"` // that carried it
	Ephemerals int       `json:"ephemerals"`
	Paths      []string  `json:"paths,omitempty"` // of the first of them
	Cause      string    `json:"cause"`

	Heard          *time.Time `json:"heard,omitempty"`
	HeardBy        *int       `json:"heard_by,omitempty"`
	ServerSilentMS float64    `json:"server_silent_ms,omitempty"`

	Who
	Connected bool       `json:"connected,omitempty"`
	LastByte  *time.Time `json:"last_byte,omitempty"`
	Ended     *time.Time `json:"connection_ended,omitempty"`
	EndReason string     `json:"connection_end_reason,omitempty"`
	Watches   int        `json:"watches,omitempty"`
	PausedMS  float64    `json:"paused_ms,omitempty"`
}

// Top is who uses a server most.
type Top struct {
	Server    int     `json:"server"`
	By        string  `json:"by"`
	Seconds   float64 `json:"seconds"` // that were counted; 0: watches are those of this moment
	Total     int64   `json:"total"`
	Sessions  []User  `json:"sessions"`
	Addresses []User  `json:"addresses"`
	Paths     []User  `json:"paths"`
}

// User is a session, an address or a path.
type User struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
	Over  int64  `json:"over,omitempty"` // what Count may be too large by
}

// Ready is whether a client that comes now would be served.
type Ready struct {
	Checks []Check `json:"checks,omitempty"` // with verbose
	Leader int     `json:"leader"`
	Reason string  `json:"reason,omitempty"`
	Role   string  `json:"role"`
	Server int     `json:"server"`
	Status string  `json:"status"` // ok, or why not
	Term   uint64  `json:"term"`
}

// Check is a part of Ready.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// Mirror is how the ensemble mirrors ZooKeeper.
type Mirror struct {
	// State is off, waiting (the server that answers does not lead), connecting, receiving, loading, following, or
	// stopped because of Fault.
	State  string   `json:"state"`
	Server int      `json:"server"` // that answers
	From   []string `json:"from,omitempty"`
	// Loaded is whether the znodes are those of the origin, as of Zxid.
	Loaded  bool          `json:"loaded"`
	Zxid    string        `json:"zxid,omitempty"`
	Loads   uint64        `json:"loads"`  // snapshots, since the mirror was begun
	Relays  int           `json:"relays"` // requests of clients that wait for the origin
	Digests MirrorDigests `json:"digests"`
	Origin  *MirrorOrigin `json:"origin,omitempty"` // nil: the server that answers does not lead
	// Findings are what the server that has loaded the snapshot would refuse to clients.
	Findings []MirrorFinding `json:"findings,omitempty"`
	Error    string          `json:"error,omitempty"` // why there is no connection
	Fault    string          `json:"fault,omitempty"` // why it has stopped
	// Taken is how the last mirror has ended, while there is none; nil: not by a take-over.
	Taken *TakeoverRecord `json:"taken_over,omitempty"`
}

// MirrorFinding is something that is mirrored, although a setting would refuse it to clients.
type MirrorFinding struct {
	Setting string   `json:"setting"`
	Problem string   `json:"problem"`
	Count   int      `json:"count"`
	Some    []string `json:"some,omitempty"` // paths or session ids
}

// Takeover is the plan of a take-over from the ZooKeeper ensemble that is mirrored, of this moment.
type Takeover struct {
	Ready bool            `json:"ready"`
	Unmet []TakeoverUnmet `json:"unmet"` // what is in the way
	From  []string        `json:"from,omitempty"`
	// Zxid is the last transaction that is here, Digest ZooKeeper's digest of the znodes after it.
	Zxid   string          `json:"zxid,omitempty"`
	Digest string          `json:"digest,omitempty"`
	Voters []TakeoverVoter `json:"voters"`               // of ZooKeeper; empty: not known (3.4)
	Need   int             `json:"need"`                 // how many of them must be fenced
	Taken  *TakeoverRecord `json:"taken_over,omitempty"` // as of a Mirror
}

// TakeoverRecord is what the state keeps of a take-over.
type TakeoverRecord struct {
	From []string `json:"from"` // the peer addresses that were mirrored
	Time string   `json:"time"`
	// Server of ZooKeeper has the log that ended the history, with Zxid; absent: none was read.
	Server int64  `json:"server,omitempty"`
	Zxid   string `json:"zxid,omitempty"`
	Tail   uint64 `json:"tail"` // transactions that only that log had
	Forced bool   `json:"forced"`
}

// TakeoverUnmet is something that is in the way of a take-over, and what to do.
type TakeoverUnmet struct {
	What string `json:"what"`
	Do   string `json:"do"`
}

// TakeoverVoter is a server of ZooKeeper.
type TakeoverVoter struct {
	ID   int64  `json:"id"`
	Peer string `json:"peer"`
}

// TakenOver is a take-over that is done.
type TakenOver struct {
	Already  bool    `json:"already"` // it was done before
	Time     string  `json:"time"`    // when it was done
	Zxid     string  `json:"zxid"`    // of the last transaction
	Znodes   int     `json:"znodes"`
	Sessions int     `json:"sessions"`
	Server   int64   `json:"server"` // of ZooKeeper, whose log ended the history; 0: none was given
	Tail     uint64  `json:"tail"`   // transactions that only that log had
	TookMS   float64 `json:"took_ms"`
}

// MirrorDigests are the digests that transactions brought.
type MirrorDigests struct {
	Compared  uint64 `json:"compared"`
	Differing uint64 `json:"differing"`
	First     string `json:"first_differing,omitempty"` // zxids
	Last      string `json:"last_differing,omitempty"`
	Since     string `json:"differs_since,omitempty"` // absent: the last one was equal
}

// MirrorOrigin is what the leader knows of the origin, and of its connections to it since its start.
type MirrorOrigin struct {
	Leader         string  `json:"leader,omitempty"` // peer address; empty: it is not connected
	Epoch          int64   `json:"epoch,omitempty"`
	Sync           string  `json:"sync,omitempty"` // SNAP or DIFF: how the connection began
	Zxid           string  `json:"zxid,omitempty"` // the last one that is known
	Behind         *int64  `json:"behind,omitempty"`
	LagMS          float64 `json:"lag_ms"`
	LagP50MS       float64 `json:"lag_p50_ms"`
	LagP99MS       float64 `json:"lag_p99_ms"`
	Transactions   int64   `json:"transactions"`
	Connections    int64   `json:"connections"`
	Snapshots      int64   `json:"snapshots"`
	SnapshotZnodes int     `json:"snapshot_znodes,omitempty"`
	SnapshotBytes  int64   `json:"snapshot_bytes,omitempty"`
}
