package recipes

import "encoding/binary"

// The format of a queue's znodes (Curator's ItemSerializer): a version, then for
// each item an opcode, its length and its bytes, then the opcode of the end. All
// numbers are big-endian.
const (
	itemsVersion = 0x00010001
	opcodeItem   = 1
	opcodeEnd    = 2
)

func encodeItem(data []byte) []byte {
	b := make([]byte, 0, 4+1+4+len(data)+1)
	b = binary.BigEndian.AppendUint32(b, itemsVersion)
	b = append(b, opcodeItem)
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	b = append(b, data...)
	return append(b, opcodeEnd)
}

// decodeItems returns the items of a znode; Curator can put several into one.
// Bytes of another format are one item as they are, so that an item can be put by
// hand, and no item stays in the queue for ever because no client can decode it.
func decodeItems(b []byte) [][]byte {
	if len(b) < 4 || binary.BigEndian.Uint32(b) != itemsVersion {
		return [][]byte{b}
	}
	var items [][]byte
	for rest := b[4:]; len(rest) > 0; {
		if rest[0] == opcodeEnd && len(rest) == 1 {
			return items
		}
		if rest[0] != opcodeItem || len(rest) < 5 {
			break
		}
		n := binary.BigEndian.Uint32(rest[1:])
		rest = rest[5:]
		if uint64(n) > uint64(len(rest)) {
			break
		}
		items = append(items, rest[:n:n])
		rest = rest[n:]
	}
	return [][]byte{b}
}
