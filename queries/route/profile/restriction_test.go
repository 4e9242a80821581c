package profile

import (
	"reflect"
	"strings"
	"testing"
)

// newMembers reads members as a test writes them: "from:1 via:n7 to:2", where n marks a node.
func newMembers(text string) (members []Member) {
	for _, field := range strings.Fields(text) {
		role, id, _ := strings.Cut(field, ":")
		m := Member{Role: role, IsWay: true}
		if rest, isNode := strings.CutPrefix(id, "n"); isNode {
			m.IsNode, m.IsWay, id = true, false, rest
		}
		for _, digit := range id {
			m.ID = m.ID*10 + int64(digit-'0')
		}
		members = append(members, m)
	}
	return members
}

func TestARestrictionConcernsModes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tags, want string }{
		{"type=restriction restriction=no_left_turn", "cb"},
		{"type=restriction restriction=no_u_turn", "cb"},
		{"type=restriction restriction=no_anything", "cb"},
		{"type=restriction restriction=only_straight_on", "cb"},
		{"type=restriction restriction=no_right_turn_on_red", ""},
		{"type=restriction restriction=yield", ""},
		{"type=restriction restriction=only", ""},
		{"type=route restriction=no_left_turn", ""},
		{"type=restriction restriction:motorcar=no_left_turn", "c"},
		{"type=restriction restriction:motor_vehicle=no_left_turn", "c"},
		{"type=restriction restriction:vehicle=no_left_turn", "cb"},
		{"type=restriction restriction:bicycle=no_left_turn", "b"},
		{"type=restriction restriction:foot=no_left_turn", "f"},
		{"type=restriction restriction:hgv=no_left_turn", ""},
		{"type=restriction:bicycle restriction=no_left_turn", "b"},
		{"type=restriction:motorcar restriction=no_left_turn", "c"},
		{"type=restriction:motorcar restriction:motorcar=no_left_turn", "c"},
		{"type=restriction:hgv restriction=no_left_turn", ""},
		{"type=restriction:hgv restriction:motorcar=no_left_turn", ""},
		{"type=restriction restriction=no_left_turn except=bicycle", "c"},
		{"type=restriction restriction=no_left_turn except=psv;motorcar", "b"},
		{"type=restriction restriction=no_left_turn except=psv;~bicycle", "c"},
		{"type=restriction restriction=no_left_turn except=psv", "cb"},
		{"type=restriction restriction:conditional=no_left_turn~@~(Mo-Fr~07:00-09:00)", ""},
	} {
		t.Run(tt.tags, func(t *testing.T) {
			t.Parallel()
			r, ok := ReadRestriction(newTags(t, tt.tags), newMembers("from:1 via:n7 to:2"))
			got := ""
			for m, letter := range "cfb" {
				if r.Modes[m] {
					got += string(letter)
				}
			}
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("got %q, %v, want %q", got, ok, tt.want)
			}
		})
	}
}

func TestARestrictionHasMembersThatFit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule, kind, members string
		want                Restriction
	}{
		{"over a node", "no_left_turn", "from:1 via:n7 to:2", Restriction{From: []int64{1}, To: []int64{2}, ViaNode: 7}},
		{"back on the same way", "no_u_turn", "from:1 via:n7 to:1", Restriction{From: []int64{1}, To: []int64{1}, ViaNode: 7}},
		{"over a way", "no_u_turn", "from:1 via:5 to:2", Restriction{From: []int64{1}, To: []int64{2}, ViaWays: []int64{5}}},
		{
			"over ways in their order", "only_straight_on", "via:6 from:1 via:5 to:2",
			Restriction{IsOnly: true, From: []int64{1}, To: []int64{2}, ViaWays: []int64{6, 5}},
		},
		{"from several ways", "no_entry", "from:1 from:3 via:n7 to:2", Restriction{From: []int64{1, 3}, To: []int64{2}, ViaNode: 7}},
		{"to several ways", "no_exit", "from:1 via:n7 to:2 to:3", Restriction{From: []int64{1}, To: []int64{2, 3}, ViaNode: 7}},
		{"other roles are passed over", "no_exit", "from:1 via:n7 to:2 location_hint:n9", Restriction{From: []int64{1}, To: []int64{2}, ViaNode: 7}},
		{"not from several ways by another kind", "no_exit", "from:1 from:3 via:n7 to:2", Restriction{}},
		{"not to several ways by another kind", "no_left_turn", "from:1 via:n7 to:2 to:3", Restriction{}},
		{"not without a via", "no_left_turn", "from:1 to:2", Restriction{}},
		{"not over two nodes", "no_left_turn", "from:1 via:n7 via:n8 to:2", Restriction{}},
		{"not over a node and a way", "no_left_turn", "from:1 via:n7 via:5 to:2", Restriction{}},
		{"not without a from", "no_left_turn", "via:n7 to:2", Restriction{}},
		{"not without a to", "no_left_turn", "from:1 via:n7", Restriction{}},
		{"not from a node", "no_left_turn", "from:n1 via:n7 to:2", Restriction{}},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			got, ok := ReadRestriction(newTags(t, "type=restriction restriction="+tt.kind), newMembers(tt.members))
			if !ok {
				got = Restriction{}
			}
			got.Modes = [Modes]bool{}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
