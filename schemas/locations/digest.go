package locations

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
func DigestOf(s StoredSite) Digest { return s.Content.Hash().Digest(s) }

// ContentHash is what a content is compared by. It costs more than all that is done with it.
type ContentHash struct{ fields, position [16]byte }

// Digest is the digest of what is stored; its content is the one the sum is of, but for the position the customer gave.
func (x ContentHash) Digest(s StoredSite) Digest {
	var d Digest
	shown, _, _ := s.ShownContent()
	typedPosition, shownPosition := s.Content.hashPosition(), shown.hashPosition()
	copy(d[:16], x.fields[:])
	copy(d[16:24], typedPosition[:])
	copy(d[24:], shownPosition[:])
	return d
}

// Similarity is how a content compares with one that is stored.
type Similarity uint8

const (
	Different Similarity = iota
	// SameShownPosition: another content, but with the position exactly as the site showed it. Where the site was placed by its
	// address, that is no wish to keep it there.
	SameShownPosition
	// Same: the customer said the same again, or what the site showed.
	Same
)

// Compare says how the content of a sum compares with the one the digest is of.
func (d Digest) Compare(hash ContentHash) Similarity {
	asTyped, asShown := bytes.Equal(hash.position[:8], d[16:24]), bytes.Equal(hash.position[:8], d[24:])
	switch {
	case bytes.Equal(hash.fields[:], d[:16]) && (asTyped || asShown):
		return Same
	case asShown && !asTyped:
		return SameShownPosition
	}
	return Different
}

// Hash is the content's. Facts that were not said and facts that are empty are the same; so are JSON texts that differ
// in spaces or in the order of members.
func (c Content) Hash() ContentHash {
	a := c.Address
	if a == nil {
		a = &SiteAddress{}
	}
	texts := append([]string{
		c.Name, a.Line1, a.Line2, a.PostalCode, a.City, a.InseeCode, a.Country, c.Phone, c.Email, c.Website,
		canonicalJSON(c.Hours), canonicalJSON(c.Properties),
	}, c.Tags...)
	return ContentHash{fields: hashTexts(texts...), position: c.hashPosition()}
}

// hashPosition is the digest of the position that a content has.
func (c Content) hashPosition() [16]byte {
	return hashTexts(c.IDBan, encodeCoordinate(c.Lat), encodeCoordinate(c.Lon))
}

func hashTexts(texts ...string) [16]byte {
	var all []byte
	for _, t := range texts {
		all = binary.LittleEndian.AppendUint32(all, uint32(len(t)))
		all = append(all, t...)
	}
	sum := sha256.Sum256(all)
	return [16]byte(sum[:16])
}

func encodeCoordinate(x *float64) string {
	if x == nil {
		return ""
	}
	var bits [8]byte
	binary.LittleEndian.PutUint64(bits[:], math.Float64bits(*x+0)) // +0: there is one zero
	return string(bits[:])
}

// canonicalJSON is a JSON text in the one way this package writes it. Numbers stay as they were written.
func canonicalJSON(text json.RawMessage) string {
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
	compact, err := json.Marshal(v)
	if err != nil {
		return string(text)
	}
	return string(compact)
}
