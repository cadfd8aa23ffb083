package jute

import "encoding/binary"

// null is the length of an absent buffer, string or vector.
const null = -1

// AppendInt32 appends v as a Jute int: 4 bytes.
func AppendInt32(b []byte, v int32) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(v))
}

// AppendInt64 appends v as a Jute long: 8 bytes.
func AppendInt64(b []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(v))
}

// AppendBool appends v as a Jute boolean: one byte, 0 or 1.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendBuffer appends v as a Jute buffer: its length and its bytes. A nil
// slice is written as null (length -1), an empty one as length 0.
func AppendBuffer(b, v []byte) []byte {
	if v == nil {
		return AppendInt32(b, null)
	}
	return append(AppendInt32(b, int32(len(v))), v...)
}

// AppendUstring appends v as a Jute ustring: its length in bytes and its bytes.
func AppendUstring(b []byte, v string) []byte {
	return append(AppendInt32(b, int32(len(v))), v...)
}

// AppendNullableUstring appends v as a Jute ustring, null if v is nil.
func AppendNullableUstring(b []byte, v *string) []byte {
	if v == nil {
		return AppendInt32(b, null)
	}
	return AppendUstring(b, *v)
}

// AppendVectorLen appends the count that starts a vector; the caller appends
// the n items. A count of -1 is a null vector.
func AppendVectorLen(b []byte, n int) []byte {
	return AppendInt32(b, int32(n))
}

// AppendUstrings appends v as a vector of ustrings. A nil slice is an empty
// vector and not a null one: the receivers of string vectors (Java's client
// for children, ZooKeeper's server for watches) do not expect null.
func AppendUstrings(b []byte, v []string) []byte {
	b = AppendVectorLen(b, len(v))
	for _, s := range v {
		b = AppendUstring(b, s)
	}
	return b
}
