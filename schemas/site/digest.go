package site

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math"
)

// Digest is enough of a site's content to say later whether another is the same, in 32 bytes: of what the customer said
// but for the position (16), of the position as the customer said it (8), and of the position as the site
// shows it (8).
type Digest [32]byte

// DigestOf is the digest of what is stored.
func DigestOf(s Stored) Digest {
	var d Digest
	body, typed := s.Content.sums()
	shown, _, _ := s.Show()
	_, seen := shown.sums()
	copy(d[:16], body[:])
	copy(d[16:24], typed[:])
	copy(d[24:], seen[:])
	return d
}

// Likeness is how a content compares with one that is stored.
type Likeness uint8

const (
	Different Likeness = iota
	// Echoed: another content, but with the position exactly as the site showed it. Where the site was placed by its
	// address, that is no wish to keep it there.
	Echoed
	// Same: the customer said the same again, or what the site showed.
	Same
)

// Compare says how a content compares with the one the digest is of.
func (d Digest) Compare(c Content) Likeness {
	body, typed := c.sums()
	said, shown := bytes.Equal(typed[:8], d[16:24]), bytes.Equal(typed[:8], d[24:])
	switch {
	case bytes.Equal(body[:], d[:16]) && (said || shown):
		return Same
	case shown && !said:
		return Echoed
	}
	return Different
}

// sums are the digests of a content without its position, and of its position. Facts that were not said and facts
// that are empty are the same; so are JSON texts that differ in spaces or in the order of members.
func (c Content) sums() (body, position [16]byte) {
	h := sha256.New()
	add := func(texts ...string) {
		var n [4]byte
		for _, t := range texts {
			binary.LittleEndian.PutUint32(n[:], uint32(len(t)))
			h.Write(n[:])
			h.Write([]byte(t))
		}
	}
	a := c.Address
	if a == nil {
		a = &Address{}
	}
	add(c.Name, a.Line1, a.Line2, a.PostalCode, a.City, a.InseeCode, a.Country, c.Phone, c.Email, c.Website)
	add(canonical(c.Hours), canonical(c.Properties))
	add(c.Tags...)
	copy(body[:], h.Sum(nil))
	h.Reset()
	add(c.IDBan, coordinate(c.Lat), coordinate(c.Lon))
	copy(position[:], h.Sum(nil))
	return body, position
}

func coordinate(x *float64) string {
	if x == nil {
		return ""
	}
	var bits [8]byte
	binary.LittleEndian.PutUint64(bits[:], math.Float64bits(*x+0)) // +0: there is one zero
	return string(bits[:])
}

// canonical is a JSON text in the one way this package writes it. Numbers stay as they were written.
func canonical(text json.RawMessage) string {
	if len(text) == 0 {
		return ""
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(text)
	}
	if m, ok := v.(map[string]any); v == nil || ok && len(m) == 0 {
		return ""
	}
	plain, err := json.Marshal(v)
	if err != nil {
		return string(text)
	}
	return string(plain)
}
