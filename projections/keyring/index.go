package keyring

import (
	"iter"
	"sync/atomic"
)

// index finds rows by a 32-bit fingerprint: open addressing, at most half full. One writer; readers take no
// lock and may see a row that has just gone, so they compare what they find.
type index struct {
	slots atomic.Pointer[[]atomic.Uint64] // fingerprint, then row + 1; 0 was never used
	used  int                             // slots that are not 0; the writer's
	live  int                             // rows; the writer's
}

// tombstone stands where a row was.
const tombstone = 1<<32 - 1

// rows are those with the fingerprint.
func (x *index) rows(fingerprint uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		slots := x.slots.Load()
		if slots == nil {
			return
		}
		for i := int(fingerprint); ; i++ {
			slot := (*slots)[i&(len(*slots)-1)].Load()
			if slot == 0 {
				return
			}
			row := uint32(slot)
			if uint32(slot>>32) == fingerprint && row != tombstone && !yield(row-1) {
				return
			}
		}
	}
}

func (x *index) add(fingerprint, row uint32) {
	if slots := x.slots.Load(); slots == nil || 2*(x.used+1) > len(*slots) {
		x.resize(x.live + 1)
	}
	insertSlot(*x.slots.Load(), uint64(fingerprint)<<32|uint64(row+1))
	x.used++
	x.live++
}

func insertSlot(slots []atomic.Uint64, slot uint64) {
	for i := int(slot >> 32); ; i++ {
		if at := &slots[i&(len(slots)-1)]; at.Load() == 0 {
			at.Store(slot)
			return
		}
	}
}

func (x *index) drop(fingerprint, row uint32) {
	slots := *x.slots.Load()
	for i := int(fingerprint); ; i++ {
		at := &slots[i&(len(slots)-1)]
		switch at.Load() {
		case uint64(fingerprint)<<32 | uint64(row+1):
			at.Store(uint64(fingerprint)<<32 | tombstone)
			x.live--
			return
		case 0:
			return
		}
	}
}

// resize makes room for rows, beside the slots that readers go on using meanwhile, and forgets what is gone.
func (x *index) resize(rows int) {
	size := 16
	for size < 3*rows {
		size *= 2
	}
	slots := make([]atomic.Uint64, size)
	x.used = x.live
	if old := x.slots.Load(); old != nil {
		for i := range *old {
			if slot := (*old)[i].Load(); slot != 0 && uint32(slot) != tombstone {
				insertSlot(slots, slot)
			}
		}
	}
	x.slots.Store(&slots)
}
