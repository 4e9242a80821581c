package locations

import (
	"encoding/binary"
	"errors"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/event"
)

// snapshotFormat names the encoding below: another encoding needs another name.
//
// The encoding is written by hand and not by encoding/gob because a state may hold half a million small structs of unexported
// fields, which gob could only write through exported copies.
const snapshotFormat = "places.3"

// marshalSnapshot encodes a state. pendingRows are left out: there are none between two commands.
func marshalSnapshot(s *State) []byte {
	b := binary.AppendUvarint(make([]byte, 0, 1024+128*s.totalSites), uint64(len(s.referentials)))
	for _, ref := range s.referentials {
		b = appendText(b, ref.code)
		b = appendText(b, string(ref.name))
		b = appendTime(b, ref.created)
		b = appendTime(b, ref.archived)
		b = binary.AppendUvarint(b, uint64(len(ref.sites)))
		for id, state := range ref.sites {
			b = state.appendBinary(appendText(b, id))
		}
	}
	b = binary.AppendUvarint(b, uint64(len(s.idempotency.oldestFirst)))
	for _, age := range s.idempotency.oldestFirst {
		a := s.idempotency.requests[age.key]
		b = appendText(b, age.key)
		b = appendTime(b, age.answeredAt)
		b = appendText(b, a.action)
		b = appendText(b, a.request)
		b = appendTime(b, a.at)
		b = binary.AppendUvarint(b, uint64(a.revision))
	}
	return b
}

// appendBinary encodes a site as flags, digest and seven numbers, for snapshotReader.readSiteState.
func (s siteState) appendBinary(b []byte) []byte {
	flags := byte(0)
	for i, set := range []bool{s.active, s.isGeocoded, s.isUnlocated} {
		if set {
			flags |= 1 << i
		}
	}
	b = append(append(b, flags), s.digest[:]...)
	for _, n := range []int64{int64(s.contentAt.revision), int64(s.contentAt.stagedEvent), int64(s.contentAt.row), s.version, s.created, s.modified, s.deactivated} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// unmarshalSnapshot decodes the state that marshalSnapshot encoded. It fails on bytes of another form, and never panics. Sums
// are not in the encoding: they follow from the sites. A duplicate code or external id is an error.
func unmarshalSnapshot(data []byte) (State, error) {
	s := State{}
	r := snapshotReader{rest: data}
	count := r.readCount()
	for range count {
		ref := &referentialState{code: r.readText(), name: event.Personal(r.readText()), created: r.readTime(), archived: r.readTime()}
		n := r.readCount()
		ref.sites = make(map[string]siteState, n)
		for range n {
			id, state := r.readText(), r.readSiteState()
			if ref.sites[id] = state; state.active {
				ref.active++
			}
		}
		s.addReferential(ref)
		r.isTruncated = r.isTruncated || len(ref.sites) != n
	}
	r.isTruncated = r.isTruncated || len(s.referentials) != count
	for range r.readCount() {
		age := requestAge{r.readText(), r.readTime()}
		s.idempotency.insert(age, answeredRequest{r.readText(), r.readText(), r.readTime(), eventstore.Revision(r.readNumber())})
	}
	if r.isTruncated || len(r.rest) > 0 {
		return State{}, errors.New("it is no state of locations")
	}
	return s, nil
}

// snapshotReader reads bytes from the front. A value that is missing is read as zero, and sets isTruncated.
type snapshotReader struct {
	rest        []byte
	isTruncated bool
}

// readBytes returns the next n bytes, which share the memory of the snapshot.
func (r *snapshotReader) readBytes(n int) []byte {
	if n > len(r.rest) {
		r.rest, r.isTruncated = nil, true
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *snapshotReader) readNumber() int64 {
	x, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.rest, r.isTruncated = nil, true
		return 0
	}
	r.rest = r.rest[n:]
	return int64(x)
}

// readCount reads the number of elements that follow. Each takes at least a byte, so a count larger than the remaining bytes
// is refused before anything is allocated for it.
func (r *snapshotReader) readCount() int {
	n := r.readNumber()
	if n < 0 || n > int64(len(r.rest)) {
		r.rest, r.isTruncated = nil, true
		return 0
	}
	return int(n)
}

func (r *snapshotReader) readText() string { return string(r.readBytes(r.readCount())) }

// readTime reads what appendTime encoded.
func (r *snapshotReader) readTime() time.Time {
	if n := r.readNumber(); n != 0 {
		return time.Unix(0, n).UTC()
	}
	return time.Time{}
}

func (r *snapshotReader) readSiteState() siteState {
	var state siteState
	if flags := r.readBytes(1); len(flags) == 1 {
		state.active, state.isGeocoded, state.isUnlocated = flags[0]&1 != 0, flags[0]&2 != 0, flags[0]&4 != 0
	}
	copy(state.digest[:], r.readBytes(len(state.digest)))
	state.contentAt = contentRef{eventstore.Revision(r.readNumber()), int32(r.readNumber()), int32(r.readNumber())}
	state.version, state.created, state.modified, state.deactivated = r.readNumber(), r.readNumber(), r.readNumber(), r.readNumber()
	return state
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendTime encodes an instant as Unix nanoseconds, and the zero time as 0.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendUvarint(b, 0)
	}
	return binary.AppendUvarint(b, uint64(t.UnixNano()))
}
