package learner

import (
	"fmt"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// packetType is the type of a packet between a learner and its leader (constants of ZooKeeper's Leader).
type packetType int32

const (
	request           packetType = 1
	proposal          packetType = 2
	ack               packetType = 3
	commit            packetType = 4
	ping              packetType = 5
	revalidate        packetType = 6
	syncPacket        packetType = 7
	inform            packetType = 8
	commitAndActivate packetType = 9
	newLeader         packetType = 10
	upToDate          packetType = 12
	diff              packetType = 13
	trunc             packetType = 14
	snap              packetType = 15
	observerInfo      packetType = 16
	leaderInfo        packetType = 17
	ackEpoch          packetType = 18
	informAndActivate packetType = 19
)

var packetNames = map[packetType]string{
	request: "REQUEST", proposal: "PROPOSAL", ack: "ACK", commit: "COMMIT", ping: "PING", revalidate: "REVALIDATE",
	syncPacket: "SYNC", inform: "INFORM", commitAndActivate: "COMMITANDACTIVATE", newLeader: "NEWLEADER",
	upToDate: "UPTODATE", diff: "DIFF", trunc: "TRUNC", snap: "SNAP", observerInfo: "OBSERVERINFO",
	leaderInfo: "LEADERINFO", ackEpoch: "ACKEPOCH", informAndActivate: "INFORMANDACTIVATE",
}

// String is ZooKeeper's name of the type.
func (t packetType) String() string {
	if name, ok := packetNames[t]; ok {
		return name
	}
	return fmt.Sprintf("a packet of type %d", int32(t))
}

// packet is ZooKeeper's QuorumPacket: a bare record, without a length before it.
type packet struct {
	kind packetType
	zxid znode.Zxid
	data []byte     // nil: null, which some servers do not survive (a PING's)
	ids  []znode.ID // of the client, with a request; the leader sends none
}

func (p *packet) append(b []byte) []byte {
	b = jute.AppendInt64(jute.AppendInt32(b, int32(p.kind)), int64(p.zxid))
	b = jute.AppendVectorLen(jute.AppendBuffer(b, p.data), len(p.ids))
	for _, id := range p.ids {
		b = jute.AppendUstring(jute.AppendUstring(b, id.Scheme), id.ID)
	}
	return b
}

// readPacket reads a packet. The stream has the bound of its data.
func readPacket(s *jute.Stream) (p packet, err error) {
	p.kind, p.zxid = packetType(s.Int32()), znode.Zxid(s.Int64())
	if _, known := packetNames[p.kind]; !known && s.Err() == nil {
		// No length frames a packet: what follows cannot be skipped with certainty.
		return p, fmt.Errorf("%w: %v", ErrProtocol, p.kind)
	}
	p.data = s.Buffer()
	for n := s.VectorLen(); n > 0 && s.Err() == nil; n-- {
		s.Ustring() // the leader never needs to name identities to us
		s.Ustring()
	}
	return p, s.Err()
}

func unexpected(p packet, wanted string) error {
	return fmt.Errorf("%w: %v instead of %s", ErrProtocol, p.kind, wanted)
}
