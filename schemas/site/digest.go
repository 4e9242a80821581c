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
func DigestOf(s Stored) Digest { return s.Content.Sum().Digest(s) }

// Sum is what a content is compared by. It costs more than all that is done with it.
type Sum struct{ body, position [16]byte }

// Digest is the digest of what is stored; its content is the one the sum is of, but for the position the customer gave.
func (x Sum) Digest(s Stored) Digest {
	var d Digest
	shown, _, _ := s.Show()
	typed, seen := s.Content.where(), shown.where()
	copy(d[:16], x.body[:])
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

// Compare says how the content of a sum compares with the one the digest is of.
func (d Digest) Compare(x Sum) Likeness {
	said, shown := bytes.Equal(x.position[:8], d[16:24]), bytes.Equal(x.position[:8], d[24:])
	switch {
	case bytes.Equal(x.body[:], d[:16]) && (said || shown):
		return Same
	case shown && !said:
		return Echoed
	}
	return Different
}

// Sum is the content's. Facts that were not said and facts that are empty are the same; so are JSON texts that differ
// in spaces or in the order of members.
func (c Content) Sum() Sum {
	a := c.Address
	if a == nil {
		a = &Address{}
	}
	texts := append([]string{
		c.Name, a.Line1, a.Line2, a.PostalCode, a.City, a.InseeCode, a.Country, c.Phone, c.Email, c.Website,
		canonical(c.Hours), canonical(c.Properties),
	}, c.Tags...)
	return Sum{body: hashOf(texts...), position: c.where()}
}

// where is the digest of the position that a content has.
func (c Content) where() [16]byte { return hashOf(c.IDBan, coordinate(c.Lat), coordinate(c.Lon)) }

func hashOf(texts ...string) [16]byte {
	var all []byte
	for _, t := range texts {
		all = binary.LittleEndian.AppendUint32(all, uint32(len(t)))
		all = append(all, t...)
	}
	sum := sha256.Sum256(all)
	return [16]byte(sum[:16])
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
