package mirror

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// The errors of Begin and End. After them nothing has changed.
var (
	// ErrAddress means that a peer address is not host:port, or that there are none or too many.
	ErrAddress = errors.New("not the peer addresses of a ZooKeeper ensemble")
	// ErrNotEmpty means that there are znodes or sessions that the origin's would replace.
	ErrNotEmpty = errors.New("there are znodes or sessions, which the origin's would replace")
	// ErrOther means that another origin is mirrored.
	ErrOther = errors.New("another ensemble is mirrored")
	// ErrOff means that nothing is mirrored.
	ErrOff = errors.New("no ensemble is mirrored")
)

// Begin begins to mirror the ensemble whose servers have these peer addresses; if it is mirrored already, nothing
// changes, except that again has the mirror begin again with a snapshot, also one that has stopped. The leader's server
// does the rest; see Status.
//
// Errors: those above, and those of Log.Do, after which the outcome is unknown; to repeat it does no harm.
func (m *Mirror) Begin(ctx context.Context, from []string, again bool) error {
	source, err := sourceOf(from)
	if err != nil {
		return err
	}
	err = m.do(ctx, &state.Command{Op: state.OpMirror, Mirror: state.MirrorStart, Data: []byte(source)})
	if err != nil || !again {
		return err
	}
	return m.do(ctx, &state.Command{Op: state.OpMirror, Mirror: state.MirrorAgain})
}

// End ends the mirror. What has been mirrored stays, and is ours from then on.
//
// Errors: ErrOff, and those of Log.Do, after which the outcome is unknown.
func (m *Mirror) End(ctx context.Context) error { return m.end(ctx, nil) }

// end is End with the Data of a MirrorStop.
func (m *Mirror) end(ctx context.Context, record []byte) error {
	return m.do(ctx, &state.Command{Op: state.OpMirror, Mirror: state.MirrorStop, Data: record})
}

func (m *Mirror) do(ctx context.Context, c *state.Command) error {
	r, err := m.log.Do(ctx, c)
	if err != nil {
		return err
	}
	switch r.Code {
	case znode.OK:
		return nil
	case znode.ErrNotEmpty:
		return ErrNotEmpty
	case znode.ErrNodeExists:
		now, _ := m.log.Mirror()
		return fmt.Errorf("%w: %s", ErrOther, now.Source)
	case znode.ErrNoNode:
		return ErrOff
	}
	return r.Code
}

// maxServers bounds the servers of an origin; ZooKeeper's ids allow no more.
const maxServers = 255

// sourceOf is the text in the log for an origin with these peer addresses.
func sourceOf(from []string) (string, error) {
	if len(from) == 0 || len(from) > maxServers {
		return "", fmt.Errorf("%w: %d addresses; want host:peerPort of every voter", ErrAddress, len(from))
	}
	for _, address := range from {
		host, port, err := net.SplitHostPort(address)
		n, bad := strconv.ParseUint(port, 10, 16)
		if err != nil || bad != nil || n == 0 || host == "" || strings.ContainsAny(address, ", \t\r\n") {
			return "", fmt.Errorf("%w: %q is not host:peerPort, as in zk1:2888", ErrAddress, address)
		}
	}
	source := strings.Join(from, ",")
	if len(source) > state.MaxMirrorSource {
		return "", fmt.Errorf("%w: the addresses have more than %d bytes", ErrAddress, state.MaxMirrorSource)
	}
	return source, nil
}

// beginBySetting begins what Config.From names, if the ensemble is empty.
func (m *Mirror) beginBySetting(ctx context.Context) {
	if len(m.cfg.From) == 0 || m.noticed {
		return
	}
	m.noticed = true
	err := m.Begin(ctx, m.cfg.From, false)
	switch {
	case err == nil:
		m.cfg.Logger.Info("mirroring the ZooKeeper ensemble of mirror.from", "from", m.cfg.From)
	case errors.Is(err, ErrNotEmpty), errors.Is(err, ErrAddress), errors.Is(err, ErrOther):
		m.cfg.Logger.Info("mirror.from has no effect", "reason", err)
	default:
		m.noticed = false // the ensemble did not answer: again
	}
}
