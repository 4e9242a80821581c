package synthetic

import "container/heap"

// parts records which things are joined (union-find).
type parts []int32

// newParts returns n separate things.
func newParts(n int) parts {
	p := make(parts, n)
	for i := range p {
		p[i] = int32(i)
	}
	return p
}

// find is the thing that stands for the part of i: two things are joined when it is the same for both.
func (p parts) find(i int32) int32 {
	for p[i] != i {
		p[i] = p[p[i]]
		i = p[i]
	}
	return i
}

// join joins two things and reports whether they were apart.
func (p parts) join(a, b int32) bool {
	a, b = p.find(a), p.find(b)
	p[max(a, b)] = min(a, b)
	return a != b
}

// arc leads to a node over an edge.
type arc struct {
	to, edge int32
	length   float64
}

// visitItem is a node on the heap of findPath.
type visitItem struct {
	node int32
	cost float64
}

// visitHeap has the nearest node on top.
type visitHeap []visitItem

func (h visitHeap) Len() int           { return len(h) }
func (h visitHeap) Less(i, j int) bool { return h[i].cost < h[j].cost }
func (h visitHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *visitHeap) Push(x any)        { *h = append(*h, x.(visitItem)) }
func (h *visitHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// findPath returns the edges of the shortest path, the last one first, or none (Dijkstra).
func findPath(arcs [][]arc, from, to int32) (edges []int32) {
	type label struct {
		cost       float64
		prev, edge int32
	}
	labels := map[int32]label{from: {0, -1, -1}}
	todo := visitHeap{{from, 0}}
	for len(todo) > 0 {
		v := heap.Pop(&todo).(visitItem)
		if v.node == to {
			break
		}
		if v.cost > labels[v.node].cost {
			continue
		}
		for _, a := range arcs[v.node] {
			cost := v.cost + a.length
			if old, ok := labels[a.to]; !ok || cost < old.cost {
				labels[a.to] = label{cost, v.node, a.edge}
				heap.Push(&todo, visitItem{a.to, cost})
			}
		}
	}
	for l, ok := labels[to]; ok && l.prev >= 0; l = labels[l.prev] {
		edges = append(edges, l.edge)
	}
	return edges
}

// strongParts returns the number of the strongly connected part of every node (Kosaraju, without recursion).
func strongParts(out, in [][]int32) []int32 {
	part := make([]int32, len(out))
	// First all nodes in the order in which a search in depth leaves them.
	var order []int32
	seen := make([]bool, len(out))
	next := make([]int, len(out))
	for root := range out {
		stack := []int32{int32(root)}
		for isNew := !seen[root]; isNew && len(stack) > 0; {
			v := stack[len(stack)-1]
			seen[v] = true
			if next[v] == len(out[v]) {
				order = append(order, v)
				stack = stack[:len(stack)-1]
			} else if next[v]++; !seen[out[v][next[v]-1]] {
				stack = append(stack, out[v][next[v]-1])
			}
		}
	}
	// Then all nodes that lead to the last one form its part, and so on.
	for i := range part {
		part[i] = -1
	}
	for i := len(order) - 1; i >= 0; i-- {
		for stack := []int32{order[i]}; len(stack) > 0; {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if part[v] < 0 {
				part[v] = int32(i)
				stack = append(stack, in[v]...)
			}
		}
	}
	return part
}
