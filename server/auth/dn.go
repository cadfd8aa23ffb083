package auth

import (
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"
)

// attribute is one part of a distinguished name.
type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// attributeSET is a relative distinguished name; package asn1 goes by the end of its name.
type attributeSET []attribute

// keywords are those of RFC 2253, section 2.3; others are written as numbers.
var keywords = map[string]string{
	"2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "STREET",
	"2.5.4.10": "O", "2.5.4.11": "OU",
	"0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.25": "DC",
}

// Subject is a certificate's distinguished name as ZooKeeper writes it in ACLs: RFC 2253, with what Java's
// X500Principal.getName makes of it.
func Subject(cert *x509.Certificate) string { return name(cert.RawSubject) }

func name(der []byte) string {
	var sets []attributeSET
	if rest, err := asn1.Unmarshal(der, &sets); err != nil || len(rest) > 0 {
		return "" // package x509 has read it already
	}
	var parts []string
	for _, set := range slices.Backward(sets) {
		var values []string
		for _, a := range set {
			values = append(values, a.String())
		}
		parts = append(parts, strings.Join(values, "+"))
	}
	return strings.Join(parts, ",")
}

// textTags are the types of strings that Java writes as text, all of them as if they were UTF-8.
var textTags = []int{asn1.TagUTF8String, asn1.TagPrintableString, asn1.TagT61String, asn1.TagIA5String,
	asn1.TagGeneralString, asn1.TagBMPString}

func (a attribute) String() string {
	keyword := keywords[a.Type.String()]
	text := a.Value.Class == asn1.ClassUniversal && slices.Contains(textTags, a.Value.Tag)
	switch {
	case keyword == "":
		return a.Type.String() + "=#" + hex.EncodeToString(a.Value.FullBytes)
	case !text:
		return keyword + "=#" + hex.EncodeToString(a.Value.FullBytes)
	}
	return keyword + "=" + escape(string(a.Value.Bytes))
}

func escape(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, string(utf8.RuneError))
	}
	const blanks = " \r"
	lead := len(text) - len(strings.TrimLeft(text, blanks))
	trail := len(strings.TrimRight(text, blanks))
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == 0:
			b.WriteString(`\00`)
			continue
		case strings.ContainsRune(`,=+<>#;"\`, r), i < lead, i >= trail:
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
