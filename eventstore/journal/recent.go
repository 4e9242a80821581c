package journal

import (
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
	appends []remembered // a ring
	next    int
	byFirst map[uuid.UUID]int32 // index into appends

	ids   []uuid.UUID // a ring of the ids behind a first one
	count uint64      // how many ever went into it
	later map[uuid.UUID]struct{}
}

type remembered struct {
	id     uuid.UUID
	key    streamKey
	first  eventstore.Revision
	last   eventstore.Position
	events int
	ids    uint64 // where in the count of ids the others began
}

func newRecent() *recent {
	return &recent{byFirst: map[uuid.UUID]int32{}, later: map[uuid.UUID]struct{}{}}
}

func (r *recent) add(key streamKey, first eventstore.Revision, last eventstore.Position, ids []uuid.UUID) {
	m := remembered{id: ids[0], key: key, first: first, last: last, events: len(ids), ids: r.count}
	if len(r.appends) < recentAppends {
		r.appends = append(r.appends, m)
	} else {
		delete(r.byFirst, r.appends[r.next].id)
		r.appends[r.next] = m
	}
	r.byFirst[m.id] = int32(r.next)
	r.next = (r.next + 1) % recentAppends
	for _, id := range ids[1:] {
		r.addLater(id)
	}
}

func (r *recent) addLater(id uuid.UUID) {
	if len(r.ids) < recentIDs {
		r.ids = append(r.ids, id)
	} else {
		slot := &r.ids[r.count%recentIDs]
		delete(r.later, *slot)
		*slot = id
	}
	r.count++
	r.later[id] = struct{}{}
}

// find is the append that began with id.
func (r *recent) find(id uuid.UUID) (remembered, bool) {
	i, ok := r.byFirst[id]
	if !ok {
		return remembered{}, false
	}
	return r.appends[i], true
}

// has says whether any of ids is remembered.
func (r *recent) has(ids []uuid.UUID) bool {
	for _, id := range ids {
		if _, ok := r.byFirst[id]; ok {
			return true
		}
		if _, ok := r.later[id]; ok {
			return true
		}
	}
	return false
}

// same says whether an append held exactly these ids; known is false when not all of them are remembered any more.
func (r *recent) same(m remembered, ids []uuid.UUID) (same, known bool) {
	if m.id != ids[0] || m.events != len(ids) {
		return false, true
	}
	if r.count > m.ids+recentIDs {
		return false, false
	}
	for i, id := range ids[1:] {
		if r.ids[(m.ids+uint64(i))%recentIDs] != id {
			return false, true
		}
	}
	return true, true
}
