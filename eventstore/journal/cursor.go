package journal

import (
	"errors"
	"fmt"
	"io"

	"lieudit/eventstore"
)

// blockSize is what a reader takes from the file at once. Events are slices of the block they came in, so it is also
// what a single retained event may keep in memory.
const blockSize = 128 << 10

// cursor takes the frames of one segment one after the other and checks each: its CRC, its place, its
// link to the one before.
type cursor struct {
	seg  *segment
	seed uint32
	pos  eventstore.Position // of the next frame
	end  eventstore.Position // what is read stays before it
	prev uint32              // crc of the frame before pos

	block []byte // the bytes from pos on that are read already
}

// next is the frame at pos, or nil at end. A frame of size 0 is damage here: only recovery expects one.
func (c *cursor) next() (frame, error) {
	if c.pos >= c.end {
		return nil, nil
	}
	if len(c.block) < markSize {
		if err := c.load(markSize); err != nil {
			return nil, err
		}
	}
	if len(c.block) < markSize {
		return nil, damage(c.pos, "frame cut short")
	}
	size := frame(c.block).size()
	if size < markSize || uint64(size) > uint64(c.end-c.pos) {
		return nil, damage(c.pos, fmt.Sprintf("frame of %d bytes", size))
	}
	if len(c.block) < size {
		if err := c.load(size); err != nil {
			return nil, err
		}
	}
	f := frame(c.block[:size:size])
	if why := f.check(c.pos, c.seed); why != "" {
		return nil, damage(c.pos, why)
	}
	if f.prev() != c.prev {
		return nil, damage(c.pos, "does not follow the frame before")
	}
	c.pos += eventstore.Position(size)
	c.prev = f.crc()
	c.block = c.block[size:]
	return f, nil
}

// load makes block hold at least n bytes, or as many as there are. Blocks are never written again once read:
// events point into them.
func (c *cursor) load(n int) error {
	want := min(uint64(max(n, blockSize)), uint64(c.end-c.pos))
	b := make([]byte, want)
	got, err := c.seg.file.ReadAt(b, int64(c.pos-c.seg.base))
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read log at %d: %w", c.pos, err)
	}
	if uint64(got) < want {
		return damage(c.pos+eventstore.Position(got), "segment file is too short")
	}
	c.block = b
	return nil
}

// at reads the one frame that stands at pos and checks all of it but its link to the one before.
func (s *segment) at(pos, end eventstore.Position, seed uint32) (frame, error) {
	c := cursor{seg: s, seed: seed, pos: pos, end: end}
	if err := c.load1(); err != nil {
		return nil, err
	}
	c.prev = frame(c.block).prev()
	return c.next()
}

// load1 reads little: most frames are small.
func (c *cursor) load1() error {
	const little = 2 << 10
	end := c.end
	c.end = min(end, c.pos+little)
	err := c.load(markSize)
	c.end = end
	if err == nil && len(c.block) < markSize {
		err = damage(c.pos, "frame cut short")
	}
	return err
}
