package locations

import (
	"encoding/binary"
	"errors"
	"time"

	"lieudit/eventstore"
)

// freezing names the form below: another form needs another name.
const freezing = "places.2"

// freeze is a state as bytes. Rows whose commit comes next are not in it: there are none between two commands.
func freeze(s *State) []byte {
	b := binary.AppendUvarint(make([]byte, 0, 1024+128*s.held), uint64(len(s.groups)))
	for _, g := range s.groups {
		b = putText(b, g.code)
		b = putText(b, g.name)
		b = putTime(b, g.created)
		b = putTime(b, g.archived)
		b = binary.AppendUvarint(b, uint64(len(g.sites)))
		for id, x := range g.sites {
			b = x.freeze(putText(b, id))
		}
	}
	b = binary.AppendUvarint(b, uint64(len(s.answers.order)))
	for _, old := range s.answers.order {
		a := s.answers.kept[old.name]
		b = putText(b, old.name)
		b = putTime(b, old.at)
		b = putText(b, a.action)
		b = putText(b, a.request)
		b = putTime(b, a.at)
		b = binary.AppendUvarint(b, uint64(a.revision))
	}
	return b
}

func (x standing) freeze(b []byte) []byte {
	flags := byte(0)
	for i, set := range []bool{x.active, x.placed, x.lost} {
		if set {
			flags |= 1 << i
		}
	}
	b = append(append(b, flags), x.digest[:]...)
	for _, n := range []int64{int64(x.content.revision), int64(x.content.staged), int64(x.content.row), x.version, x.created, x.modified, x.deactivated} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// thaw is the state that freeze made the bytes of.
func thaw(text []byte) (State, error) {
	s := State{}
	b := frozen{rest: text}
	groups := b.count()
	for range groups {
		g := &group{code: b.text(), name: b.text(), created: b.time(), archived: b.time()}
		n := b.count()
		g.sites = make(map[string]standing, n)
		for range n {
			id, x := b.text(), b.standing()
			if g.sites[id] = x; x.active {
				g.active++
			}
		}
		s.add(g)
		b.short = b.short || len(g.sites) != n
	}
	b.short = b.short || len(s.groups) != groups
	for range b.count() {
		old := aged{b.text(), b.time()}
		s.answers.put(old, answer{b.text(), b.text(), b.time(), eventstore.Revision(b.number())})
	}
	if b.short || len(b.rest) > 0 {
		return State{}, errors.New("it is not a state of places")
	}
	return s, nil
}

// frozen is bytes that are read from the front. What is missing reads as zero.
type frozen struct {
	rest  []byte
	short bool
}

func (b *frozen) take(n int) []byte {
	if n > len(b.rest) {
		b.rest, b.short = nil, true
		return nil
	}
	taken := b.rest[:n]
	b.rest = b.rest[n:]
	return taken
}

func (b *frozen) number() int64 {
	x, n := binary.Uvarint(b.rest)
	if n <= 0 {
		b.rest, b.short = nil, true
		return 0
	}
	b.rest = b.rest[n:]
	return int64(x)
}

// count is how many things follow, each of which takes bytes.
func (b *frozen) count() int {
	n := b.number()
	if n < 0 || n > int64(len(b.rest)) {
		b.rest, b.short = nil, true
		return 0
	}
	return int(n)
}

func (b *frozen) text() string { return string(b.take(b.count())) }

func (b *frozen) time() time.Time {
	if n := b.number(); n != 0 {
		return time.Unix(0, n).UTC()
	}
	return time.Time{}
}

func (b *frozen) standing() standing {
	var x standing
	if flags := b.take(1); len(flags) == 1 {
		x.active, x.placed, x.lost = flags[0]&1 != 0, flags[0]&2 != 0, flags[0]&4 != 0
	}
	copy(x.digest[:], b.take(len(x.digest)))
	x.content = place{eventstore.Revision(b.number()), int32(b.number()), int32(b.number())}
	x.version, x.created, x.modified, x.deactivated = b.number(), b.number(), b.number(), b.number()
	return x
}

func putText(b []byte, s string) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }

// putTime keeps an instant of the log to the nanosecond; 0 is none.
func putTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendUvarint(b, 0)
	}
	return binary.AppendUvarint(b, uint64(t.UnixNano()))
}
