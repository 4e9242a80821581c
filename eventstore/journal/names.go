package journal

import "lieudit/eventstore"

// names keeps one string for each name that comes by again and again. The zero map is for callers who
// know the stream; nothing but type names goes in then.
type names map[string]string

// namesKept bounds a long reading of ever new streams.
const namesKept = 1 << 16

func (n names) of(b []byte) string {
	if s, ok := n[string(b)]; ok {
		return s
	}
	if len(n) >= namesKept {
		clear(n)
	}
	s := string(b)
	n[s] = s
	return s
}

func (n names) recorded(f frame, stream string) eventstore.Recorded {
	metadata, data := f.bodies()
	return eventstore.Recorded{
		Position: f.position(), Stream: stream, Revision: f.revision(), ID: f.id(),
		Type: n.of(f.typeName()), Time: f.time(), Data: data, Metadata: metadata,
	}
}

// wants is Filter.Matches without making a string.
func wants(want eventstore.Filter, stream []byte) bool {
	if len(want) == 0 {
		return len(stream) == 0 || stream[0] != '$'
	}
	n := 0
	for n < len(stream) && stream[n] != '-' {
		n++
	}
	for _, c := range want {
		if string(stream[:n]) == c {
			return true
		}
	}
	return false
}
