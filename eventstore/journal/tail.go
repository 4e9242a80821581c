package journal

import (
	"sync"

	"lieudit/eventstore"
)

// view is what readers may see: everything durable at one moment.
type view struct {
	segments       []*segment          // never changed in place
	end            eventstore.Position // in the last segment; the others end at their own end
	lastCheckpoint eventstore.Checkpoint
}

// segmentEnd is where the frames of segment i end.
func (v view) segmentEnd(i int) eventstore.Position {
	if i == len(v.segments)-1 {
		return v.end
	}
	return v.segments[i].end
}

// crcBefore is the CRC that the first frame of segment i links to.
func (v view) crcBefore(i int, seed uint32) uint32 {
	if i == 0 {
		return seed
	}
	return v.segments[i-1].lastCRC
}

// findSegment is the index of the segment that pos lies in, -1 when there is none.
func (v view) findSegment(pos eventstore.Position) int {
	lo, hi := 0, len(v.segments)
	for lo < hi {
		if mid := (lo + hi) / 2; v.segments[mid].base <= pos {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 || pos >= v.segments[lo-1].nextBase() {
		return -1
	}
	return lo - 1
}

// viewNotifier is the latest view and wakes those who wait for a later one.
type viewNotifier struct {
	mu      sync.Mutex
	view    view
	changed chan struct{} // made by the first who waits
}

func (t *viewNotifier) load() view {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.view
}

// watch is the latest view and a channel that is closed by the next.
func (t *viewNotifier) watch() (view, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.view, t.changed
}

func (t *viewNotifier) publish(v view) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.view = v
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}
