package mapping

import (
	"regexp"
	"strings"

	"lieudit/http/sitefile/clean"
	"lieudit/queries/address/commune"
)

// fits reports whether the content of a column can be the field that its name suggests. A weak name matches only a pattern, and needs
// stronger content than an exact name.
func fits(f Field, c *Stats, isWeak bool) bool {
	if c.Filled == 0 {
		return false
	}
	atLeast := func(share float64, is func(sample) bool) bool { return c.share(is) >= share }
	switch f {
	case Name:
		isNamed := atLeast(0.5, isText) && !atLeast(0.9, isWebsiteAsWritten)
		return isNamed && (!isWeak || c.distinctShare() > 0.3 && !atLeast(0.5, isFlag))
	case HouseNumber, bareNumber:
		return atLeast(0.7, isHouseNumber)
	case Suffix:
		return atLeast(0.8, isShort(12))
	case StreetType, StreetName, Line1, Country, Line2:
		return atLeast(0.5, isAddressText)
	case City:
		return atLeast(0.5, isText) && !atLeast(0.5, isFlag)
	case PostalCode: // abroad it has digits, and few characters
		return atLeast(0.5, isPostcode) || !isWeak && atLeast(0.7, func(v sample) bool { return countDigits(v.text) > 0 && isShort(10)(v) })
	case PostalTown:
		return atLeast(0.5, isPostalTown)
	case Active:
		return c.saysOpen()
	case Tags:
		return !atLeast(0.3, func(v sample) bool { return v.isJSON && strings.ContainsRune(v.text, '{') })
	case InseeCode:
		return atLeast(0.5, isInseeCode)
	case Lat: // such a column may hold wrong values, which are reported
		return atLeast(0.8, isDecimalWithin(-90, 90)) || !isWeak && atLeast(0.5, isDecimalWithin(-1e9, 1e9))
	case Lon:
		return atLeast(0.8, isDecimalWithin(-180, 180)) || !isWeak && atLeast(0.5, isDecimalWithin(-1e9, 1e9))
	case X, Y:
		return atLeast(0.5, isProjected)
	case Pair:
		return atLeast(0.7, isPair)
	case Shape:
		return atLeast(0.7, isShape)
	case Phone:
		return atLeast(0.5, isPhone)
	case Email:
		return atLeast(0.5, isEmail)
	case Website:
		return atLeast(0.6, isWebsite)
	case Hours:
		return atLeast(0.5, isHours)
	case Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday:
		return atLeast(0.5, isDayHours) && !atLeast(0.5, isFlag)
	}
	return true
}

// saysOpen reports whether a column says of sites whether they are in business: nearly all its values do, and some sites are.
func (c *Stats) saysOpen() bool {
	flag := ActiveFlag(c.Column.Name)
	isKnown := func(v sample) bool { _, known := clean.IsOpen(v.text, flag); return known }
	isOpen := func(v sample) bool { open, known := clean.IsOpen(v.text, flag); return open && known }
	return c.share(isKnown) >= 0.9 && c.share(isOpen) > 0
}

// ActiveFlag is the meaning of a mere yes in a column with a name.
func ActiveFlag(name string) clean.Flag {
	name = normalizeName(name)
	isOne := func(names string) bool { return strings.Contains(", "+names+", ", ", "+name+", ") }
	switch {
	case strings.HasPrefix(name, "etat administratif"):
		return clean.StateOfINSEE
	case isOne(activeNames):
		return clean.YesIsOpen
	case isOne(shutNames):
		return clean.YesIsShut
	}
	return clean.NoFlag
}

// isAddressText reports whether a value can be a line of an address.
func isAddressText(v sample) bool {
	return isText(v) && !isPair(v) && !isEmail(v) && !isFlag(v) && !isWebsiteAsWritten(v)
}

// contentFields are the fields that content alone can reveal, and the share of a column that must do so.
var contentFields = []struct {
	field Field
	share float64
	is    func(sample) bool
}{
	{Email, 0.9, isEmail},
	{Phone, 0.9, isPhoneAsWritten},
	{Website, 0.9, isWebsiteAsWritten},
	{PostalCode, 0.95, isPostcodeOnly},
	{PostalTown, 0.9, isPostalTownOnly},
	{Line1, 0.6, isStreetLine},
	{City, 0.9, isCommune},
	{Hours, 0.8, isWeek},
}

// matchByContent gives fields without a column the fullest one whose content reveals them, unless its name contradicts it:
// a column of fax numbers is full of telephones.
func (s *guesser) matchByContent() {
	for _, kind := range contentFields {
		if _, known := s.m.Find(kind.field); known || kind.field == Line1 && s.hasStreet() || kind.field == PostalTown && s.hasPostalCode() {
			continue
		}
		best := -1
		for i, c := range s.profile.Columns {
			if s.isDecided[i] || contradictsName(c.Column.Name, kind.field) || c.Filled < 2 || c.share(kind.is) < kind.share {
				continue
			}
			if kind.field == PostalCode && c.share(isInseeCodeOnly) >= kind.share {
				continue // either: the content fits two fields
			}
			if best < 0 || c.Filled > s.profile.Columns[best].Filled {
				best = i
			}
		}
		if best >= 0 {
			s.assign(best, kind.field, ByContent)
		}
	}
}

func (s *guesser) hasPostalCode() bool {
	_, has := s.m.Find(PostalCode)
	return has
}

func (s *guesser) hasStreet() bool {
	_, has := s.m.Find(StreetName)
	return has
}

// contraryWords are words of names that rule out every field that content reveals: such a column is not about the row itself.
const contraryWords = "fax siege mere departement dep dept depts dpt departements region photo photos image logo video picto facebook instagram twitter wikipedia wikidata source siren siret siege gestionnaire exploitant operateur amenageur proprietaire date maj contact2 academie canton epci credit licence license attribution commons"

// contradictsName reports whether a column is named after something other than a field.
func contradictsName(name string, f Field) bool {
	for _, line := range namePatterns {
		if line.field != f {
			continue
		}
		for word := range strings.FieldsSeq(normalizeName(name)) {
			if containsWord(line.not, word) || containsWord(contraryWords, word) {
				return true
			}
		}
	}
	return false
}

// isPostcodeOnly reports whether a value is a postcode, and not an INSEE code that is not a postcode.
func isPostcodeOnly(v sample) bool {
	table, err := commune.Load()
	return err == nil && isPostcodeAsWritten(v) && len(table.ByPostcode(v.text)) > 0
}

// isPostalTown reports whether a value is a postcode and the town that it serves, in one order or the other.
func isPostalTown(v sample) bool {
	if v.isJSON {
		return false
	}
	_, town, ok := clean.PostalTown(v.text)
	return ok && town != ""
}

// isPostalTownOnly reports whether a value is a postcode and the name of a commune.
func isPostalTownOnly(v sample) bool {
	if v.isJSON {
		return false
	}
	_, town, ok := clean.PostalTown(v.text)
	return ok && isCommune(sample{text: town})
}

// isInseeCodeOnly reports whether a value is an INSEE code, even if it is a postcode too.
func isInseeCodeOnly(v sample) bool {
	table, err := commune.Load()
	if err != nil || !isPostcodeAsWritten(v) {
		return false
	}
	_, ok := table.ByCode(v.text)
	return ok
}

func isCommune(v sample) bool {
	table, err := commune.Load()
	return err == nil && isText(v) && table.IsName(v.text, false)
}

// streetLine is a text with the type of a street, perhaps after a number.
var streetLine = regexp.MustCompile(`(?i)^(\d+\s*[a-z]{0,6}[, ]+)?(r|rue|av|ave|avenue|bd|bld|boul|boulevard|place|pl|quai|chemin|ch|che|route|rte|impasse|imp|allées?|all|cours|square|sq|passage|pass|faubourg|fbg|rond[- ]point|esplanade|promenade|sentier|voie|villa|cité|montée|ruelle|lotissement|lieu[- ]dit)\b`)

func isStreetLine(v sample) bool { return !v.isJSON && streetLine.MatchString(v.text) }

// isHouseNumberBefore reports whether a line begins with a number and continues.
func isHouseNumberBefore(v sample) bool {
	return v.text[0] >= '0' && v.text[0] <= '9' && strings.ContainsFunc(v.text, func(r rune) bool { return r == ' ' })
}

// isWeek reports whether a text is opening hours by weekday.
func isWeek(v sample) bool {
	if v.isJSON || countDigits(v.text) < 2 {
		return false
	}
	_, ok := clean.Hours(v.text, nil)
	return ok
}
