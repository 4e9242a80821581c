package journal

import (
	"hash/maphash"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

const (
	maxRecentAppends = 16 << 10  // the contract asks for 10,000
	maxRecentIDs     = 128 << 10 // of events behind the first of their append
)

// recentAppends remembers the latest appends by their ids. The first id of each is kept as long as the append is; those behind
// it only as long as there is room, so that batches of thousands do not fill the memory.
type recentAppends struct {
	appends  []recentAppend // one for each of firsts
	firstIDs *idRing
	laterIDs *idRing
}

type recentAppend struct {
	key            streamKey
	firstRevision  eventstore.Revision
	lastPosition   eventstore.Position
	eventCount     int
	laterIDsBefore uint64 // the count of later ids before its own
}

func newRecentAppends() *recentAppends {
	return &recentAppends{
		appends:  make([]recentAppend, 0, 64),
		firstIDs: newIDRing(maxRecentAppends), laterIDs: newIDRing(maxRecentIDs),
	}
}

func (r *recentAppends) addAppend(key streamKey, first eventstore.Revision, last eventstore.Position, ids []uuid.UUID) {
	m := recentAppend{key: key, firstRevision: first, lastPosition: last, eventCount: len(ids), laterIDsBefore: r.laterIDs.added}
	if at := r.firstIDs.add(ids[0]); at < len(r.appends) {
		r.appends[at] = m
	} else {
		r.appends = append(r.appends, m)
	}
	for _, id := range ids[1:] {
		r.laterIDs.add(id)
	}
}

// findByFirstID is the append that began with id.
func (r *recentAppends) findByFirstID(id uuid.UUID) (recentAppend, bool) {
	if at := r.firstIDs.indexOf(id); at >= 0 {
		return r.appends[at], true
	}
	return recentAppend{}, false
}

// containsAny says whether any of ids is remembered, given that the first of them does not begin an append.
func (r *recentAppends) containsAny(ids []uuid.UUID) bool {
	for i, id := range ids {
		if r.laterIDs.indexOf(id) >= 0 || i > 0 && r.firstIDs.indexOf(id) >= 0 {
			return true
		}
	}
	return false
}

// hasSameIDs says whether an append that begins with the first of ids held exactly these; known is false when not all of
// its ids are remembered any more.
func (r *recentAppends) hasSameIDs(m recentAppend, ids []uuid.UUID) (same, known bool) {
	if m.eventCount != len(ids) {
		return false, true
	}
	if len(ids) > 1 && r.laterIDs.added > m.laterIDsBefore+maxRecentIDs {
		return false, false
	}
	for i, id := range ids[1:] {
		if r.laterIDs.ids[(m.laterIDsBefore+uint64(i))%maxRecentIDs] != id {
			return false, true
		}
	}
	return true, true
}

// idRing are the last so many ids, the oldest making room for the newest, and a hash table over them.
type idRing struct {
	capacity     uint64 // how many are kept, a power of two
	seed         maphash.Seed
	ids          []uuid.UUID // a ring
	nextInBucket []int32     // after each id, the place of the next of its bucket and 1, or 0
	buckets      []int32     // of each bucket likewise
	added        uint64      // how many ever were added
}

func newIDRing(size uint64) *idRing { return &idRing{capacity: size, seed: maphash.MakeSeed()} }

func (l *idRing) bucketOf(id uuid.UUID) *int32 {
	return &l.buckets[maphash.Bytes(l.seed, id[:])%l.capacity]
}

// add puts id in and returns its place in the ring.
func (l *idRing) add(id uuid.UUID) int {
	if l.buckets == nil {
		l.buckets = make([]int32, l.capacity)
	}
	at := int(l.added % l.capacity)
	if at == len(l.ids) {
		l.ids, l.nextInBucket = append(l.ids, id), append(l.nextInBucket, 0)
	} else {
		l.unlink(at)
		l.ids[at] = id
	}
	b := l.bucketOf(id)
	l.nextInBucket[at], *b = *b, int32(at+1)
	l.added++
	return at
}

func (l *idRing) unlink(at int) {
	p := l.bucketOf(l.ids[at])
	for *p != int32(at+1) {
		p = &l.nextInBucket[*p-1]
	}
	*p = l.nextInBucket[at]
}

// indexOf is where id is in the ring, negative when it is not.
func (l *idRing) indexOf(id uuid.UUID) int {
	if l.buckets == nil {
		return -1
	}
	at := *l.bucketOf(id)
	for at != 0 && l.ids[at-1] != id {
		at = l.nextInBucket[at-1]
	}
	return int(at) - 1
}
