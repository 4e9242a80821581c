package keyring

import (
	"iter"
	"sync/atomic"
)

// pageRows is how many rows a page has. Changing one row copies the whole page; a snapshot copies one pointer per page.
const pageRows = 16

// page is a few rows, one text for each, and lists for those that have one. A page that readers can reach never changes. Its
// pointers come first, so that the garbage collector scans no further.
type page[R any] struct {
	texts string // of all rows, concatenated
	lists *[pageRows][]string
	ends  [pageRows]uint16 // where each row's text ends in texts
	rows  [pageRows]R
}

// maxText is the longest text of a row, in bytes: a page's ends fit in 16 bits.
const maxText = (1<<16 - 1) / pageRows

// text is the text of row i. It shares the page's bytes.
func (p *page[R]) text(i int) string {
	if i == 0 {
		return p.texts[:p.ends[0]]
	}
	return p.texts[p.ends[i-1]:p.ends[i]]
}

func (p *page[R]) list(i int) []string {
	if p.lists == nil {
		return nil
	}
	return p.lists[i]
}

// put changes row i of a page that no reader can reach yet. The texts of later rows move, and their ends with them.
func (p *page[R]) put(i int, row R, text string, list []string) {
	old := p.text(i)
	start := int(p.ends[i]) - len(old)
	p.texts = p.texts[:start] + text + p.texts[p.ends[i]:]
	for j := i; j < pageRows; j++ {
		p.ends[j] = uint16(int(p.ends[j]) + len(text) - len(old))
	}
	p.rows[i] = row
	p.putList(i, list)
}

// putList sets the list of row i. It copies the array of lists first: the page that this one was copied from shares it.
func (p *page[R]) putList(i int, list []string) {
	if list == nil && p.lists == nil {
		return
	}
	lists := new([pageRows][]string)
	if p.lists != nil {
		*lists = *p.lists
	}
	lists[i] = list
	p.lists = lists
}

// pages is a growing table that one goroutine changes while others read it without a lock: a change replaces the page that
// contains it.
type pages[R any] struct {
	root atomic.Pointer[[]atomic.Pointer[page[R]]]
	rows uint32 // rows ever used; only the writer reads it
}

// pageOf finds the page of row n, and the row's index in it. The row must have been set.
func (t *pages[R]) pageOf(n uint32) (*page[R], int) {
	return (*t.root.Load())[n/pageRows].Load(), int(n % pageRows)
}

// set writes row n: an existing one, or the next new one.
func (t *pages[R]) set(n uint32, row R, text string, list []string) {
	changed := new(page[R])
	if n < t.rows || n%pageRows != 0 {
		p, _ := t.pageOf(n)
		*changed = *p
	}
	t.rows = max(t.rows, n+1)
	changed.put(int(n%pageRows), row, text, list)
	t.replace(int(n/pageRows), changed)
}

// replace publishes page i. Readers see either the old or the new page.
func (t *pages[R]) replace(i int, p *page[R]) {
	root := t.root.Load()
	if root == nil || i >= len(*root) {
		root = t.grow(i)
	}
	(*root)[i].Store(p)
}

// grow makes a larger array of pages and publishes it. Readers of the old array see its pages unchanged.
func (t *pages[R]) grow(i int) *[]atomic.Pointer[page[R]] {
	grown := make([]atomic.Pointer[page[R]], max(8, 2*i))
	if old := t.root.Load(); old != nil {
		for j := range *old {
			grown[j].Store((*old)[j].Load())
		}
	}
	t.root.Store(&grown)
	return &grown
}

// pagesSnapshot is a table at one instant.
type pagesSnapshot[R any] struct {
	pages []*page[R]
	rows  uint32
}

// snapshot copies one pointer per page; the rows are shared, because published pages do not change.
func (t *pages[R]) snapshot() pagesSnapshot[R] {
	f := pagesSnapshot[R]{make([]*page[R], (t.rows+pageRows-1)/pageRows), t.rows}
	for i := range f.pages {
		f.pages[i] = (*t.root.Load())[i].Load()
	}
	return f
}

// each yields all rows, also free ones.
func (f pagesSnapshot[R]) each(yield func(row *R, text string, list []string)) {
	for n := range f.rows {
		p, i := f.pages[n/pageRows], int(n%pageRows)
		yield(&p.rows[i], p.text(i), p.list(i))
	}
}

// pagesBuilder fills an empty table that nobody reads yet. It fills each page once, whereas pages.set would copy the page for
// each row. Call flushPage at the end.
type pagesBuilder[R any] struct {
	table *pages[R]
	page  *page[R]
	texts []byte
}

// addRow appends a row. It copies the text.
func (f *pagesBuilder[R]) addRow(row R, text []byte, list []string) {
	i := int(f.table.rows % pageRows)
	if i == 0 {
		f.page, f.texts = new(page[R]), f.texts[:0]
	}
	f.texts = append(f.texts, text...)
	for j := i; j < pageRows; j++ {
		f.page.ends[j] = uint16(len(f.texts))
	}
	f.page.rows[i] = row
	f.page.putList(i, list)
	f.table.rows++
	if i == pageRows-1 {
		f.flushPage()
	}
}

// flushPage publishes the last page, which may not be full.
func (f *pagesBuilder[R]) flushPage() {
	if f.page != nil {
		f.page.texts = string(f.texts)
		f.table.replace(int(f.table.rows-1)/pageRows, f.page)
		f.page = nil
	}
}

// index finds rows by a 32-bit fingerprint: an open-addressed hash table, at most half full. One goroutine writes. Readers
// take no lock and may see a row that has just been removed, so they compare what they find. A fingerprint's slots begin at
// the fingerprint modulo the size, which is a power of two, and continue up to the first slot that was never used.
type index struct {
	slots atomic.Pointer[[]atomic.Uint64] // fingerprint in the high 32 bits, row + 1 in the low ones; 0 if never used
	used  int                             // slots that are not 0; only the writer reads it
	live  int                             // rows in the index; only the writer reads it
}

// tombstone replaces row + 1 in a slot whose row is gone. A slot of 0 would hide the rows in the slots after it.
const tombstone = 1<<32 - 1

// rows yields the rows with a fingerprint.
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

// addEntry adds a row. It counts tombstones as used, so a table with many of them is rebuilt without them.
func (x *index) addEntry(fingerprint, row uint32) {
	if slots := x.slots.Load(); slots == nil || 2*(x.used+1) > len(*slots) {
		x.resize(x.live + 1)
	}
	insertSlot(*x.slots.Load(), uint64(fingerprint)<<32|uint64(row+1))
	x.used++
	x.live++
}

// insertSlot puts a slot into the first slot for its fingerprint that was never used.
func insertSlot(slots []atomic.Uint64, slot uint64) {
	for i := int(slot >> 32); ; i++ {
		if at := &slots[i&(len(slots)-1)]; at.Load() == 0 {
			at.Store(slot)
			return
		}
	}
}

// drop removes a row, if it is there.
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

// resize makes a table for n rows, without tombstones, while readers keep using the old one. The new table is at most a third
// full, so the next resize is not soon.
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
