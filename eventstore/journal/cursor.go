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
	segment *segment
	seed    uint32
	pos     eventstore.Position // of the next frame
	end     eventstore.Position // what is read stays before it
	prevCRC uint32              // crc of the frame before pos

	block []byte // the bytes from pos on that are read already
}

// nextFrame is the frame at pos, or nil at end. A frame of size 0 is damage here: only recovery expects one.
func (c *cursor) nextFrame() (frame, error) {
	if c.pos >= c.end {
		return nil, nil
	}
	if len(c.block) < durableMarkSize {
		if err := c.loadBlock(durableMarkSize); err != nil {
			return nil, err
		}
	}
	if len(c.block) < durableMarkSize {
		return nil, newCorruptError(c.pos, "frame cut short")
	}
	size := frame(c.block).size()
	if size < durableMarkSize || uint64(size) > uint64(c.end-c.pos) {
		return nil, newCorruptError(c.pos, fmt.Sprintf("frame of %d bytes", size))
	}
	if len(c.block) < size {
		if err := c.loadBlock(size); err != nil {
			return nil, err
		}
	}
	f := frame(c.block[:size:size])
	if why := f.invalidReason(c.pos, c.seed); why != "" {
		return nil, newCorruptError(c.pos, why)
	}
	if f.prevCRC() != c.prevCRC {
		return nil, newCorruptError(c.pos, "does not follow the frame before")
	}
	c.pos += eventstore.Position(size)
	c.prevCRC = f.crc()
	c.block = c.block[size:]
	return f, nil
}

// loadBlock makes block hold at least n bytes, or as many as there are. Blocks are never written again once read:
// events point into them.
func (c *cursor) loadBlock(n int) error {
	want := min(uint64(max(n, blockSize)), uint64(c.end-c.pos))
	b := make([]byte, want)
	got, err := c.segment.file.ReadAt(b, int64(c.pos-c.segment.base))
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read log at %d: %w", c.pos, err)
	}
	if uint64(got) < want {
		return newCorruptError(c.pos+eventstore.Position(got), "segment file is too short")
	}
	c.block = b
	return nil
}

// readFrameAt reads the one frame that stands at pos and checks all of it but its link to the one before.
func (s *segment) readFrameAt(pos, end eventstore.Position, seed uint32) (frame, error) {
	c := cursor{segment: s, seed: seed, pos: pos, end: end}
	if err := c.loadSmallBlock(); err != nil {
		return nil, err
	}
	c.prevCRC = frame(c.block).prevCRC()
	return c.nextFrame()
}

// loadSmallBlock reads little: most frames are small.
func (c *cursor) loadSmallBlock() error {
	const smallBlock = 2 << 10
	end := c.end
	c.end = min(end, c.pos+smallBlock)
	err := c.loadBlock(durableMarkSize)
	c.end = end
	if err == nil && len(c.block) < durableMarkSize {
		err = newCorruptError(c.pos, "frame cut short")
	}
	return err
}
