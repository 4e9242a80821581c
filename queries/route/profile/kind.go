package profile

// kind is the meaning of the main tag of a way: its class, and the default speed of each mode.
type kind struct {
	class  Class
	isLink bool
	speed  [Modes]float64 // km/h; 0: closed unless a tag of the mode opens it
	push   float64        // km/h when pushing a bicycle, if the way is made for walking; otherwise 0
	// opens are the modes for which the general tag access=yes opens the way, besides those that have a speed.
	opens [Modes]bool

	isMovable    bool // a bridge that opens for ships
	isImpliedOne bool // a one-way road unless a tag says otherwise
}

func (k kind) isFerry() bool { return k.class == Ferry || k.class == ShuttleTrain }

const (
	walking = 5  // km/h, on foot
	cycling = 15 // km/h, by bicycle
	pushing = 4  // km/h, pushing a bicycle
)

// highways are the values of the tag highway that are roads. Any other value, such as construction, proposed, raceway or bus_stop,
// is not a road. Only highway=construction closes a road for works: a road that stays open next to works, on the road or on rails
// in it, keeps its highway tag, whatever its construction and railway tags are.
var highways = map[string]kind{
	//                                                  car  foot     bike
	"motorway":       {class: Motorway, speed: speeds{90, 0, 0}},
	"motorway_link":  {class: Motorway, speed: speeds{45, 0, 0}, isLink: true},
	"trunk":          {class: Trunk, speed: speeds{85, 0, 0}},
	"trunk_link":     {class: Trunk, speed: speeds{40, 0, 0}, isLink: true},
	"primary":        {class: Primary, speed: speeds{65, walking, cycling}},
	"primary_link":   {class: Primary, speed: speeds{30, walking, cycling}, isLink: true},
	"secondary":      {class: Secondary, speed: speeds{55, walking, cycling}},
	"secondary_link": {class: Secondary, speed: speeds{25, walking, cycling}, isLink: true},
	"tertiary":       {class: Tertiary, speed: speeds{40, walking, cycling}},
	"tertiary_link":  {class: Tertiary, speed: speeds{20, walking, cycling}, isLink: true},
	"unclassified":   {class: Unclassified, speed: speeds{25, walking, cycling}},
	"residential":    {class: Residential, speed: speeds{25, walking, cycling}},
	"living_street":  {class: LivingStreet, speed: speeds{10, walking, cycling}},
	"service":        {class: Service, speed: speeds{15, walking, cycling}},
	"busway":         {class: Service, speed: speeds{0, 0, 0}},
	"road":           {class: Unclassified, speed: speeds{0, 0, 0}, opens: [Modes]bool{true, true, true}},
	"track":          {class: Track, speed: speeds{0, walking, 12}, opens: [Modes]bool{Car: true}},
	"pedestrian":     {class: Pedestrian, speed: speeds{0, walking, 0}, push: pushing},
	"cycleway":       {class: Cycleway, speed: speeds{0, 0, cycling}, opens: [Modes]bool{Foot: true}},
	"bridleway":      {class: Path, speed: speeds{0, 0, 0}, opens: [Modes]bool{Foot: true}},
	"footway":        {class: Footway, speed: speeds{0, walking, 0}, push: pushing},
	"platform":       {class: Footway, speed: speeds{0, walking, 0}, push: pushing},
	"pier":           {class: Footway, speed: speeds{0, walking, 0}, push: pushing},
	"path":           {class: Path, speed: speeds{0, walking, 13}},
	"steps":          {class: Steps, speed: speeds{0, 3, 0}, push: 2},
}

// otherKinds are the ways without a highway tag that lead somewhere, by key and value.
var otherKinds = []struct {
	key, value string
	kind       kind
}{
	{"route", "ferry", kind{class: Ferry, speed: speeds{5, 5, 5}}},
	{"route", "shuttle_train", kind{class: ShuttleTrain, speed: speeds{10, 0, 0}}},
	{"railway", "platform", kind{class: Footway, speed: speeds{0, walking, 0}, push: pushing}},
	{"public_transport", "platform", kind{class: Footway, speed: speeds{0, walking, 0}, push: pushing}},
	{"man_made", "pier", kind{class: Footway, speed: speeds{0, walking, 0}, push: pushing}},
}

// speeds are the speeds of car, foot and bike in km/h.
type speeds = [Modes]float64

// defaultSpeed is the speed of a mode on a way that is not made for it, but that a tag opens to it.
var defaultSpeed = speeds{10, walking, cycling}

// movableBridgeSpeed includes the waiting for ships, unless a speed limit shows that traffic flows. Pedestrians cross at their own
// pace.
const movableBridgeSpeed = 5

// readKind returns false if a way is not a road, or cannot be passed.
func readKind(tags Tags) (kind, bool) {
	k, ok := findKind(tags)
	if !ok || tags.Get("impassable") == "yes" || tags.Get("status") == "impassable" {
		return kind{}, false
	}
	k.isMovable = tags.Get("bridge") == "movable"
	k.isImpliedOne = isRoundabout(tags) || k.class == Motorway && !k.isLink
	return k, true
}

func findKind(tags Tags) (kind, bool) {
	highway := tags.Get("highway")
	if k, ok := highways[highway]; ok {
		return k, true
	}
	if isSet(highway) {
		return kind{}, false
	}
	for i := range otherKinds {
		if o := &otherKinds[i]; tags.Get(o.key) == o.value {
			return o.kind, true
		}
	}
	return kind{}, false
}
