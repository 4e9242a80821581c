package journal

import "lieudit/eventstore"

// interner keeps one string for each name that comes by again and again. The zero map is for callers who
// know the stream; nothing but type interner goes in then.
type interner map[string]string

// maxInterned bounds a long reading of ever new streams.
const maxInterned = 1 << 16

func (n interner) intern(b []byte) string {
	if s, ok := n[string(b)]; ok {
		return s
	}
	if len(n) >= maxInterned {
		clear(n)
	}
	s := string(b)
	n[s] = s
	return s
}

func (n interner) decodeEvent(f frame, stream string) eventstore.RecordedEvent {
	metadata, data := f.metadataAndData()
	return eventstore.RecordedEvent{
		Position: f.position(), Stream: stream, Revision: f.revision(), ID: f.id(),
		Type: n.intern(f.typeName()), Time: f.time(), Data: data, Metadata: metadata,
	}
}

// matchesFilter is Filter.Matches without making a string.
func matchesFilter(filter eventstore.Filter, stream []byte) bool {
	if len(filter) == 0 {
		return len(stream) == 0 || stream[0] != '$'
	}
	n := 0
	for n < len(stream) && stream[n] != '-' {
		n++
	}
	for _, c := range filter {
		if string(stream[:n]) == c {
			return true
		}
	}
	return false
}
