package journal

import (
	"sync"

	"lieudit/eventstore"
)

// view is what readers may see: everything durable at one moment.
type view struct {
	segs []*segment          // never changed in place
	end  eventstore.Position // in the last segment; the others end at their own end
	last eventstore.Mark
}

// endOf is where the frames of segment i end.
func (v view) endOf(i int) eventstore.Position {
	if i == len(v.segs)-1 {
		return v.end
	}
	return v.segs[i].end
}

// before is the CRC that the first frame of segment i links to.
func (v view) before(i int, seed uint32) uint32 {
	if i == 0 {
		return seed
	}
	return v.segs[i-1].last
}

// holding is the index of the segment that pos lies in, -1 when there is none.
func (v view) holding(pos eventstore.Position) int {
	lo, hi := 0, len(v.segs)
	for lo < hi {
		if mid := (lo + hi) / 2; v.segs[mid].base <= pos {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 || pos >= v.segs[lo-1].next() {
		return -1
	}
	return lo - 1
}

// tail is the latest view and wakes those who wait for a later one.
type tail struct {
	mu   sync.Mutex
	view view
	wake chan struct{} // made by the first who waits
}

func (t *tail) load() view {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.view
}

// watch is the latest view and a channel that is closed by the next.
func (t *tail) watch() (view, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wake == nil {
		t.wake = make(chan struct{})
	}
	return t.view, t.wake
}

func (t *tail) publish(v view) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.view = v
	if t.wake != nil {
		close(t.wake)
		t.wake = nil
	}
}
