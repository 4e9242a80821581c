package vintage

import (
	"math"
	"sort"
)

// curve is the place of a position on a Z-order curve.
func curve(lon, lat int32) uint64 {
	return spread(uint32(lon)^(1<<31)) | spread(uint32(lat)^(1<<31))<<1
}

// spread puts a zero bit before each bit.
func spread(x uint32) uint64 {
	v := uint64(x)
	v = (v | v<<16) & 0x0000ffff0000ffff
	v = (v | v<<8) & 0x00ff00ff00ff00ff
	v = (v | v<<4) & 0x0f0f0f0f0f0f0f0f
	v = (v | v<<2) & 0x3333333333333333
	return (v | v<<1) & 0x5555555555555555
}

// RowsAround calls yield with the rows in a box that holds the circle of so many metres, and some beyond it.
func (v *Vintage) RowsAround(lon, lat int32, metres float64, yield func(row uint32, p Point)) {
	around(Column(v.parts[secRowsByPlace]), v.RowPoint, box{lon, lat, metres}, yield)
}

// StreetsAround does the same for streets and localities.
func (v *Vintage) StreetsAround(lon, lat int32, metres float64, yield func(street uint32, p Point)) {
	at := func(i uint32) Point {
		r := v.streets.at(i)
		return Point{r.i32(32), r.i32(36), r.i32(40), r.i32(44)}
	}
	around(Column(v.parts[secStreetsByPlace]), at, box{lon, lat, metres}, yield)
}

// box is a circle, in millionths of degrees and metres.
type box struct {
	lon, lat int32
	metres   float64
}

const metresPerDegree = 111_320

// halves are the box's half width and half height.
func (b box) halves() (w, h float64) {
	h = b.metres / metresPerDegree * 1e6
	return h / max(math.Cos(float64(b.lat)/1e6*math.Pi/180), 0.01), h
}

// around walks the cells of the curve that touch the box: squares of the least size that keeps them few.
func around(order Column, at func(uint32) Point, b box, yield func(uint32, Point)) {
	w, h := b.halves()
	level := uint(0)
	for float64(uint64(1)<<level) < max(w, h) && level < 31 {
		level++
	}
	west, east := lattice(float64(b.lon)-w), lattice(float64(b.lon)+w)
	south, north := lattice(float64(b.lat)-h), lattice(float64(b.lat)+h)
	for y := south >> level; y <= north>>level; y++ {
		for x := west >> level; x <= east>>level; x++ {
			walk(order, at, (spread(uint32(x<<level)) | spread(uint32(y<<level))<<1), 2*level, yield)
		}
	}
}

// lattice is a coordinate as the curve counts it.
func lattice(f float64) uint64 { return uint64(min(max(f+(1<<31), 0), 1<<32-1)) }

func walk(order Column, at func(uint32) Point, from uint64, bits uint, yield func(uint32, Point)) {
	i := sort.Search(order.Len(), func(i int) bool {
		p := at(order.At(i))
		return curve(p.Lon, p.Lat) >= from
	})
	for ; i < order.Len(); i++ {
		p := at(order.At(i))
		if c := curve(p.Lon, p.Lat); c>>bits != from>>bits {
			return
		}
		yield(order.At(i), p)
	}
}
