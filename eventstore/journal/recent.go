package journal

import (
	"hash/maphash"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

const (
	recentAppends = 16 << 10  // the contract asks for 10,000
	recentIDs     = 128 << 10 // of events behind the first of their append
)

// recent remembers the latest appends by their ids. The first id of each is kept as long as the append is; those behind
// it only as long as there is room, so that batches of thousands do not fill the memory.
type recent struct {
	appends []remembered // one for each of firsts
	firsts  *lastIDs
	later   *lastIDs
}

type remembered struct {
	key    streamKey
	first  eventstore.Revision
	last   eventstore.Position
	events int
	later  uint64 // the count of later ids before its own
}

func newRecent() *recent {
	return &recent{
		appends: make([]remembered, 0, 64),
		firsts:  newLastIDs(recentAppends), later: newLastIDs(recentIDs),
	}
}

func (r *recent) add(key streamKey, first eventstore.Revision, last eventstore.Position, ids []uuid.UUID) {
	m := remembered{key: key, first: first, last: last, events: len(ids), later: r.later.count}
	if at := r.firsts.add(ids[0]); at < len(r.appends) {
		r.appends[at] = m
	} else {
		r.appends = append(r.appends, m)
	}
	for _, id := range ids[1:] {
		r.later.add(id)
	}
}

// find is the append that began with id.
func (r *recent) find(id uuid.UUID) (remembered, bool) {
	if at := r.firsts.find(id); at >= 0 {
		return r.appends[at], true
	}
	return remembered{}, false
}

// has says whether any of ids is remembered, given that the first of them does not begin an append.
func (r *recent) has(ids []uuid.UUID) bool {
	for i, id := range ids {
		if r.later.find(id) >= 0 || i > 0 && r.firsts.find(id) >= 0 {
			return true
		}
	}
	return false
}

// same says whether an append that begins with the first of ids held exactly these; known is false when not all of
// its ids are remembered any more.
func (r *recent) same(m remembered, ids []uuid.UUID) (same, known bool) {
	if m.events != len(ids) {
		return false, true
	}
	if len(ids) > 1 && r.later.count > m.later+recentIDs {
		return false, false
	}
	for i, id := range ids[1:] {
		if r.later.ids[(m.later+uint64(i))%recentIDs] != id {
			return false, true
		}
	}
	return true, true
}

// lastIDs are the last so many ids, the oldest making room for the newest, and a hash table over them.
type lastIDs struct {
	size  uint64 // how many are kept, a power of two
	seed  maphash.Seed
	ids   []uuid.UUID // a ring
	next  []int32     // after each id, the place of the next of its bucket and 1, or 0
	heads []int32     // of each bucket likewise
	count uint64      // how many ever were added
}

func newLastIDs(size uint64) *lastIDs { return &lastIDs{size: size, seed: maphash.MakeSeed()} }

func (l *lastIDs) bucket(id uuid.UUID) *int32 {
	return &l.heads[maphash.Bytes(l.seed, id[:])%l.size]
}

// add puts id in and returns its place in the ring.
func (l *lastIDs) add(id uuid.UUID) int {
	if l.heads == nil {
		l.heads = make([]int32, l.size)
	}
	at := int(l.count % l.size)
	if at == len(l.ids) {
		l.ids, l.next = append(l.ids, id), append(l.next, 0)
	} else {
		l.drop(at)
		l.ids[at] = id
	}
	b := l.bucket(id)
	l.next[at], *b = *b, int32(at+1)
	l.count++
	return at
}

func (l *lastIDs) drop(at int) {
	p := l.bucket(l.ids[at])
	for *p != int32(at+1) {
		p = &l.next[*p-1]
	}
	*p = l.next[at]
}

// find is where id is in the ring, negative when it is not.
func (l *lastIDs) find(id uuid.UUID) int {
	if l.heads == nil {
		return -1
	}
	at := *l.bucket(id)
	for at != 0 && l.ids[at-1] != id {
		at = l.next[at-1]
	}
	return int(at) - 1
}
