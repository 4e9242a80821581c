package mappedfile

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"
)

// Number is what columns hold.
type Number interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

// View returns a section as a column of numbers, without copying it: the column lies in the mapping, must not be written to, and
// must not be used after Close. It fails with the format's ErrDamaged if the length of the section is not a multiple of their size.
// Only the length is checked: the numbers of a damaged section may be anything.
func View[T Number](f *File, id Section) ([]T, error) {
	data := f.Section(id)
	if size := sizeOf[T](); len(data)%size != 0 {
		return nil, fmt.Errorf("%w: section %d has %d bytes, not a multiple of %d", f.format.ErrDamaged, id, len(data), size)
	}
	return decodeColumn[T](data), nil
}

func sizeOf[T Number]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// decodeColumn reinterprets bytes of the file as numbers. The bytes must begin at a multiple of 8 in memory, as each section does.
func decodeColumn[T Number](data []byte) []T {
	data = orderBytes(data, sizeOf[T]())
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/sizeOf[T]())
}

// encodeColumn returns numbers as the bytes that the file holds.
func encodeColumn[T Number](values []T) []byte {
	data := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*sizeOf[T]())
	return orderBytes(data, sizeOf[T]())
}

// orderBytes converts numbers between the byte order of this machine and that of the file. If the two differ, the result is a copy.
func orderBytes(data []byte, size int) []byte {
	if isLittleEndian := binary.NativeEndian.Uint16([]byte{1, 0}) == 1; isLittleEndian || size == 1 {
		return data
	}
	out := slices.Clone(data)
	for number := range slices.Chunk(out, size) {
		slices.Reverse(number)
	}
	return out
}
