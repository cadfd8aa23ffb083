package rest

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/zk-lite/zk-lite/znode"
)

// Stat is a znode's Stat as JSON: ids in hexadecimal, times in milliseconds since
// the epoch, as ZooKeeper's tools have them.
type Stat struct {
	Czxid          string `json:"czxid"`
	Mzxid          string `json:"mzxid"`
	Pzxid          string `json:"pzxid"`
	Ctime          int64  `json:"ctime"`
	Mtime          int64  `json:"mtime"`
	Version        int32  `json:"version"`
	Cversion       int32  `json:"cversion"`
	Aversion       int32  `json:"aversion"`
	EphemeralOwner string `json:"ephemeralOwner"`
	DataLength     int32  `json:"dataLength"`
	NumChildren    int32  `json:"numChildren"`
}

// StatOf returns a Stat as JSON has it.
func StatOf(s *znode.Stat) *Stat {
	return &Stat{
		Czxid: s.Czxid.String(), Mzxid: s.Mzxid.String(), Pzxid: s.Pzxid.String(),
		Ctime: s.Ctime, Mtime: s.Mtime, Version: int32(s.Version), Cversion: int32(s.Cversion),
		Aversion: int32(s.Aversion), EphemeralOwner: s.EphemeralOwner.String(),
		DataLength: s.DataLength, NumChildren: s.NumChildren,
	}
}

// Content is data as JSON: text where it is text, else base64.
type Content struct {
	Data     *string `json:"data,omitempty"`
	Encoding string  `json:"encoding,omitempty"`
}

// The encodings of data in JSON.
const (
	encodingText   = "utf-8"
	encodingBase64 = "base64"
)

// ContentOf returns data as JSON has it.
func ContentOf(data []byte) Content {
	text, encoding := string(data), encodingText
	if !utf8.Valid(data) {
		text, encoding = base64.StdEncoding.EncodeToString(data), encodingBase64
	}
	return Content{&text, encoding}
}

// Decode is the inverse of ContentOf; no data is empty data.
func (c Content) Decode(param string) ([]byte, error) {
	if c.Data == nil {
		return []byte{}, nil
	}
	switch c.Encoding {
	case "", encodingText:
		return []byte(*c.Data), nil
	case encodingBase64:
		b, err := base64.StdEncoding.DecodeString(*c.Data)
		if err != nil {
			return nil, BadRequest(param, "data: %v", err)
		}
		return b, nil
	}
	return nil, BadRequest(param, "encoding: %q is neither %s nor %s", c.Encoding, encodingText,
		encodingBase64)
}
