package network

import (
	"cmp"
	"slices"
)

// The attributes of junctions are kept in short lists next to the graph, because few junctions have any: a column of junctions,
// ascending, and a column of their values.

// exit is the number of a motorway's exit at the node where the exit begins.
type exit struct{ at, text uint32 }

// listExits lists the nodes that have the number of an exit, in their order, and adds the numbers to the texts.
func (s *source) listExits() {
	for node, facts := range s.facts {
		if facts.Exit != "" {
			s.exits = append(s.exits, exit{at: node})
		}
	}
	slices.SortFunc(s.exits, func(a, b exit) int { return cmp.Compare(a.at, b.at) })
	for i := range s.exits {
		s.exits[i].text = s.roads.addText(s.facts[s.exits[i].at].Exit)
	}
}

// writeExits writes the numbers of exits at junctions of the mode.
func (w *layerWriter) writeExits(b *layerBuilder) {
	var exits []exit
	for _, e := range b.exits {
		if junction, ok := b.junctionOf(e.at); ok {
			exits = append(exits, exit{junction, e.text})
		}
	}
	slices.SortFunc(exits, func(a, b exit) int { return cmp.Compare(a.at, b.at) })
	for _, e := range exits {
		w.w.AppendU32(layerSection(w.mode, secExits), e.at)
		w.w.AppendU32(layerSection(w.mode, secExitTexts), e.text)
	}
}

// JunctionExit returns the number of the exit of a motorway that begins at a junction, or "". In France the number belongs to the
// junction and not to the ramp, so it does not concern traffic that stays on the motorway.
func (l *Layer) JunctionExit(junction uint32) string {
	if i, ok := slices.BinarySearch(l.exits, junction); ok {
		return l.network.shape.text(l.exitTexts[i])
	}
	return ""
}

// listMiniRoundabouts lists the nodes that are mini roundabouts, in their order.
func (s *source) listMiniRoundabouts() {
	for node, facts := range s.facts {
		if facts.IsMiniRoundabout {
			s.mini = append(s.mini, node)
		}
	}
	slices.Sort(s.mini)
}

// writeMiniRoundabouts writes the junctions of the mode that are mini roundabouts.
func (w *layerWriter) writeMiniRoundabouts(b *layerBuilder) {
	var junctions []uint32
	for _, node := range b.mini {
		if junction, ok := b.junctionOf(node); ok {
			junctions = append(junctions, junction)
		}
	}
	slices.Sort(junctions)
	writeColumn(w, secMiniRoundabouts, junctions)
}

// IsMiniRoundabout reports whether a junction is a mini roundabout: one that the map draws as a point, without a road of its own.
func (l *Layer) IsMiniRoundabout(junction uint32) bool {
	_, ok := slices.BinarySearch(l.mini, junction)
	return ok
}
