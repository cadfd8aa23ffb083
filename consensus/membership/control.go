package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// controlVersion is that of control messages. A release may add fields that an older one can do without; a message that
// others must not misunderstand has another version.
const controlVersion = 1

func checkControlVersion(v int) error {
	if v != controlVersion {
		return fmt.Errorf("a control message has version %d, and this server reads version %d: the two servers "+
			"run releases "+
			"that are not neighbours; upgrade one release after the other", v, controlVersion)
	}
	return nil
}

// Request is a control message: a line of JSON on a control connection, with a Reply as answer.
type Request struct {
	Version  int            `json:"version"`
	Op       string         `json:"op"`
	From     state.ServerID `json:"from,omitempty"`
	Ensemble string         `json:"ensemble,omitempty"`
	Server   state.ServerID `json:"server,omitempty"` // the one that the request is about
	Leader   state.ServerID `json:"leader,omitempty"` // the one that is to lose it, if Server is NoServer
	Force    bool           `json:"force,omitempty"`
	At       []uint64       `json:"at,omitempty"` // indexes
	// Keys are those of the ensemble that is being founded.
	Keys *peerkeys.Table `json:"keys,omitempty"`
	// Seeds says that the server that asks knows ensembles that are founded with imported data, and Seed is the digest
	// of those of RequestFoundSeeded.
	Seeds bool   `json:"seeds,omitempty"`
	Seed  string `json:"seed,omitempty"`
	// Proof is that of a server whose key is not bound (peerkeys.Keys.Prove).
	Proof []byte `json:"proof,omitempty"`
	// Of a server that joins: where it is, whether it is to vote, and whether it begins without data.
	Addr  string `json:"addr,omitempty"`
	Vote  bool   `json:"vote,omitempty"`
	Fresh bool   `json:"fresh,omitempty"`
	// Key and Token are for the leader: the key of the server that joins, and the one-time token that it has shown.
	Key   peerkeys.Key `json:"key,omitzero"`
	Token peerkeys.Key `json:"token,omitzero"`
}

// The requests.
const (
	RequestWho   = "who"  // who are you, and what am I in your configuration?
	RequestFound = "form" // belong to this ensemble, which is being founded
	// RequestFoundSeeded is RequestFound with imported data: who has none waits for a leader that has. Release 1.0
	// would take it for RequestFound, and elect a leader without the data.
	RequestFoundSeeded = "form-seeded"
	controlCheck       = "check"
	controlJoin        = "join" // bind my key, and let me in
	// The others are for the leader.
	controlBind      = "bind" // what a member has found of one that joins
	controlAdd       = "add"
	controlRemove    = "remove"
	controlTransfer  = "transfer"
	controlCheckStop = "spare"
	controlStatus    = "survey"
)

// founds reports whether a request founds an ensemble.
func (r *Request) founds() bool { return r.Op == RequestFound || r.Op == RequestFoundSeeded }

// Reply answers a Request.
type Reply struct {
	Version       int            `json:"version"`
	Server        state.ServerID `json:"server"`
	Ensemble      string         `json:"ensemble,omitempty"` // empty: fresh
	Bootstrapping bool           `json:"forming,omitempty"`
	// Seed is the digest of the imported data of a server that is fresh, and NoSeed if it has none. Empty: it runs a
	// release that knows no imported data.
	Seed     string   `json:"seed,omitempty"`
	Suffrage Suffrage `json:"standing,omitempty"` // of From, in raft's configuration
	Applied  uint64   `json:"applied,omitempty"`  // index
	Last     uint64   `json:"last,omitempty"`     // index
	// Keys is the table of the server that answers, for servers whose key is in it.
	Keys *peerkeys.Table `json:"keys,omitempty"`
	// Removed says that From is not in the configuration as of Applied.
	Removed bool `json:"removed,omitempty"`
	// Check answers controlCheck.
	Check *selfcheck.Answer `json:"check,omitempty"`
	// Led says that the server has a leader.
	Led bool `json:"led,omitempty"`
	// Called is the host by which the server finds From.
	Called string `json:"called,omitempty"`
	// Status answers controlStatus.
	Status *Status `json:"survey,omitempty"`
	Error  string  `json:"error,omitempty"`
	// Why Error, if the asker does something about it.
	NotLeader bool `json:"not_leader,omitempty"`
	TooFew    bool `json:"too_few,omitempty"`
	nextRelease

	Proof []byte `json:"proof,omitempty"` // answers that of the request

	Proved   bool          `json:"-"` // Proof is good
	ShownKey *peerkeys.Key `json:"-"` // with which the answer came; nil: without TLS
}

// NoSeed is the Reply.Seed of a server without imported data.
const NoSeed = "none"

const (
	controlTimeout = 3 * time.Second
	controlMax     = 64 << 10 // bytes of a request, which a stranger may send
	replyMax       = 256 << 10
)

// Between two tries.
const (
	retryMin = 2 * time.Millisecond
	retryMax = 100 * time.Millisecond
)

// Refused reports whether the server that was asked has answered, and does not know this server's key. err is what Ask
// has returned with the reply.
func (r *Reply) Refused(err error) bool {
	var alert *net.OpError
	return err != nil && (r.Error != "" || errors.As(err, &alert) && alert.Op == "remote error")
}

// control asks other servers.
type control struct {
	self state.ServerID
	mux  *mux.Mux
	keys *peerkeys.Keys
}

// Ask sends a request to a server. The error is its, or why there is no answer.
func (c *control) Ask(ctx context.Context, to state.ServerID, req Request) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	conn, err := c.mux.Dial(ctx, mux.KindControl, AddressOf(to), mux.NoServer)
	if err != nil {
		return Reply{}, unsentError{err}
	}
	defer func() { _ = conn.Close() }()
	if err := c.keys.CheckKey(conn.Conn, to); err != nil && req.Op != controlJoin {
		return Reply{}, unsentError{err}
	}
	until, _ := ctx.Deadline()
	if err := conn.SetDeadline(until); err != nil {
		return Reply{}, err
	}
	req.Version, req.From, req.Seeds = controlVersion, c.self, req.Op == RequestWho
	if req.Op == RequestWho || req.founds() || req.Op == controlJoin {
		if req.Proof, err = c.keys.Prove(conn.Conn); err != nil {
			return Reply{}, err
		}
	}
	if err := json.NewEncoder(conn).Encode(req); err != nil {
		return Reply{}, err
	}
	var reply Reply
	if err := json.NewDecoder(io.LimitReader(conn, replyMax)).Decode(&reply); err != nil {
		return Reply{}, err
	}
	if err := checkControlVersion(reply.Version); err != nil {
		return Reply{}, fmt.Errorf("server %d: %w", to, err)
	}
	if key, secure := c.keys.KeyOf(conn.Conn); secure {
		reply.ShownKey, reply.Proved = &key, c.keys.Proved(conn.Conn, reply.Proof)
	}
	switch {
	case reply.Error != "":
		return reply, fmt.Errorf("server %d: %s", to, reply.Error)
	case reply.Server != to:
		return reply, fmt.Errorf("the server at the address of server %d is server %d", to, reply.Server)
	}
	return reply, nil
}
