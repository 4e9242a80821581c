package address

import (
	"fmt"
	"iter"
	"slices"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

// area is where answers may lie: communes by their ordinals, in their order. A nil one is everywhere.
type area []uint32

// has says whether a commune lies in the area.
func (a area) has(commune uint32) bool {
	if a == nil {
		return true
	}
	_, ok := slices.BinarySearch(a, commune)
	return ok
}

// ranges are the streets of the area.
func (a area) ranges(v *vintage.Vintage) iter.Seq2[uint32, uint32] {
	return func(yield func(from, to uint32) bool) {
		if a == nil {
			yield(0, uint32(v.Streets+v.Localities))
			return
		}
		for _, ordinal := range a {
			if c := v.Commune(ordinal); !yield(c.From, c.To) {
				return
			}
		}
	}
}

// areaOf are the communes a filter lets through. What a filter says that names no commune lets none through.
func (e *Engine) areaOf(f Filter) area {
	var parts []area
	if len(f.CityCodes) > 0 {
		parts = append(parts, e.communesOf(f.CityCodes))
	}
	if len(f.Postcodes) > 0 {
		parts = append(parts, e.servedBy(f.Postcodes))
	}
	if len(f.Departments) > 0 {
		parts = append(parts, e.communesIn(f.Departments))
	}
	if len(parts) == 0 {
		return nil
	}
	both := parts[0]
	for _, part := range parts[1:] {
		both = slices.DeleteFunc(both, func(commune uint32) bool { return !part.has(commune) })
	}
	return both
}

// sorted makes an area of ordinals that are no nil one.
func sorted(ordinals []uint32) area {
	slices.Sort(ordinals)
	return append(area{}, slices.Compact(ordinals)...)
}

// communesOf are the communes with those codes: a city stands for its arrondissements, a former commune for the one it
// is part of.
func (e *Engine) communesOf(codes []string) area {
	var all []uint32
	for _, code := range codes {
		all = append(all, e.ordinals(code)...)
	}
	return sorted(all)
}

// ordinals are the communes of the vintage that a code stands for.
func (e *Engine) ordinals(code string) (all []uint32) {
	if ordinal, ok := e.v.CommuneOf(code); ok {
		return []uint32{ordinal}
	}
	known, ok := e.table.ByCode(code)
	if !ok {
		return nil
	}
	for _, part := range e.table.Children(code) {
		if ordinal, ok := e.v.CommuneOf(part.Code); ok && part.Kind == commune.Arrondissement {
			all = append(all, ordinal)
		}
	}
	if ordinal, ok := e.v.CommuneOf(known.Parent); ok && known.Parent != "" {
		all = append(all, ordinal)
	}
	return all
}

func (e *Engine) servedBy(postcodes []string) area {
	var all []uint32
	for _, code := range postcodes {
		communes := e.v.PostcodeCommunes(number(code))
		for i := range communes.Len() {
			all = append(all, communes.At(i))
		}
	}
	return sorted(all)
}

func (e *Engine) communesIn(departments []string) area {
	byDepartment := e.departments()
	var all []uint32
	for _, d := range departments {
		all = append(all, byDepartment[d]...)
	}
	return sorted(all)
}

// byDepartment lists the communes of a vintage by the department they lie in.
func byDepartment(v *vintage.Vintage) map[string][]uint32 {
	all := map[string][]uint32{}
	for i := range uint32(v.Communes) {
		d := commune.DepartmentOf(v.Commune(i).String())
		all[d] = append(all[d], i)
	}
	return all
}

// postcodeText writes a postcode as it is typed.
func postcodeText(code uint32) string { return fmt.Sprintf("%05d", code) }
