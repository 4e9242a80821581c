package partition

import "slices"

// stretches groups the nodes that no cut needs to separate: a dead end joins the node that it is attached to, and a node of a chain
// one of its two neighbours. No group stands for more than limit junctions, so that pieces can be divided evenly. It returns the
// group of each node and the number of groups.
func (p *piece) stretches(limit int) (group []int32, groups int) {
	s := &stretcher{
		piece: p, limit: int32(limit),
		parent: make([]int32, len(p.id)), size: slices.Clone(p.size), gone: make([]bool, len(p.id)),
	}
	degree := make([]int32, len(p.id))
	for v := range s.parent {
		s.parent[v], degree[v] = int32(v), p.first[v+1]-p.first[v]
	}
	s.foldDeadEnds(degree)
	s.foldChains(degree)
	group = make([]int32, len(p.id))
	for v := range group { // the root of a group may come after others of it
		group[v] = -1
	}
	for v := range group {
		root := s.root(int32(v))
		if group[root] < 0 {
			group[root] = int32(groups)
			groups++
		}
		group[v] = group[root]
	}
	return group, groups
}

// stretcher joins the nodes of a piece to groups.
type stretcher struct {
	*piece
	limit  int32
	parent []int32 // for each node, a node of its group that is nearer to the root
	size   []int32 // for each root, the junctions of its group
	gone   []bool  // whether the node was folded into its neighbour
}

func (s *stretcher) root(v int32) int32 {
	for s.parent[v] != v {
		s.parent[v] = s.parent[s.parent[v]]
		v = s.parent[v]
	}
	return v
}

// join puts the group of v into that of u, unless they are the same or too large together.
func (s *stretcher) join(v, u int32) bool {
	v, u = s.root(v), s.root(u)
	if v == u || s.size[v]+s.size[u] > s.limit {
		return false
	}
	s.parent[v] = u
	s.size[u] += s.size[v]
	return true
}

// foldDeadEnds folds dead ends, and the nodes that become dead ends by that. degree counts the neighbours that are left.
func (s *stretcher) foldDeadEnds(degree []int32) {
	for leaf := range s.parent {
		for v := int32(leaf); degree[v] == 1 && !s.gone[v]; {
			u := s.left(v, -1)
			if !s.join(v, u) {
				break
			}
			s.gone[v] = true
			degree[v]--
			degree[u]--
			if u > int32(leaf) { // its own turn comes
				break
			}
			v = u
		}
	}
}

// foldChains joins each node that has two neighbours to the one that stands for fewer junctions.
func (s *stretcher) foldChains(degree []int32) {
	for i := range s.parent {
		v := int32(i)
		if degree[v] != 2 || s.gone[v] {
			continue
		}
		a := s.left(v, -1)
		b := s.left(v, a)
		if s.size[s.root(b)] < s.size[s.root(a)] {
			a, b = b, a
		}
		if !s.join(v, a) {
			s.join(v, b)
		}
	}
}

// left is the first neighbour of a node that is neither gone nor the excepted one.
func (s *stretcher) left(v, except int32) int32 {
	for a := s.first[v]; a < s.first[v+1]; a++ {
		if u := s.head[a]; u != except && !s.gone[u] {
			return u
		}
	}
	return v
}
