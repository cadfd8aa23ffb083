package raftlog

// chunkLen is the number of positions per chunk of an index: 32 KiB, so that growing never copies
// more than a list of chunks, and a prefix deletion gives memory back.
const chunkLen = 4096

// index maps consecutive Raft indexes to positions, 8 bytes each.
type index struct {
	base   uint64 // Raft index of the first position
	n      int    // number of positions
	skip   int    // unused positions at the start of the first chunk, < chunkLen
	chunks []*[chunkLen]position
}

// get returns the position of i, which must be held.
func (x *index) get(i uint64) position {
	k := int(i-x.base) + x.skip
	return x.chunks[k/chunkLen][k%chunkLen]
}

// add appends the position of i, which must be base+n unless the index is empty.
func (x *index) add(i uint64, p position) {
	if x.n == 0 {
		*x = index{base: i}
	}
	k := x.skip + x.n
	if k == len(x.chunks)*chunkLen {
		x.chunks = append(x.chunks, new([chunkLen]position))
	}
	x.chunks[k/chunkLen][k%chunkLen] = p
	x.n++
}

// deleteFrom forgets i and everything above.
func (x *index) deleteFrom(i uint64) {
	if i <= x.base {
		*x = index{}
		return
	}
	if i-x.base >= uint64(x.n) {
		return
	}
	x.n = int(i - x.base)
	used := (x.skip + x.n + chunkLen - 1) / chunkLen
	clear(x.chunks[used:])
	x.chunks = x.chunks[:used]
}

// deleteBelow forgets everything below i.
func (x *index) deleteBelow(i uint64) {
	if i <= x.base {
		return
	}
	if i-x.base >= uint64(x.n) {
		*x = index{}
		return
	}
	d := int(i - x.base)
	x.base, x.n, x.skip = i, x.n-d, x.skip+d
	whole := x.skip / chunkLen
	x.skip -= whole * chunkLen
	clear(x.chunks[:whole])
	x.chunks = x.chunks[whole:]
}
