package clean

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// dialPlan is how numbers of a country are dialled within it.
type dialPlan struct {
	code     string // of the country, after the +
	trunk    string // stands before a number at home and is dropped abroad
	min, max int    // digits after the code
}

// dialPlans are the countries whose sites a French company keeps. Lengths: ITU E.164, annex of assigned codes, and the plans of the
// countries' regulators.
var dialPlans = map[string]dialPlan{
	"BE": {"32", "0", 8, 9}, "CH": {"41", "0", 9, 9}, "LU": {"352", "", 4, 11}, "DE": {"49", "0", 6, 11}, "IT": {"39", "", 6, 11},
	"ES": {"34", "", 9, 9}, "GB": {"44", "0", 9, 10}, "MC": {"377", "", 8, 9}, "AD": {"376", "", 6, 9}, "NL": {"31", "0", 9, 9},
	"PT": {"351", "", 9, 9}, "IE": {"353", "0", 7, 9}, "AT": {"43", "0", 4, 13}, "US": {"1", "", 10, 10}, "CA": {"1", "", 10, 10},
	"MA": {"212", "0", 9, 9}, "TN": {"216", "", 8, 8}, "DZ": {"213", "0", 8, 9}, "NC": {"687", "", 6, 6}, "PF": {"689", "", 6, 8},
	"WF": {"681", "", 6, 6},
}

// frenchRegions are the parts of France whose numbers have ten digits from 0 on. "", no region, also means France.
var frenchRegions = wordSet("FR GP MQ GF RE YT PM BL MF TF")

// frenchCodes are the codes of France and of the territories whose numbers have ten digits at home.
var frenchCodes = wordSet("33 262 508 590 594 596")

// countryCodes are the assigned codes of one and two digits. Every other code has three.
var countryCodes = wordSet(`1 7 20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66
	81 82 84 86 90 91 92 93 94 95 98`)

// overseas are the codes of the territories, by the three digits after the initial 0 of their numbers at home (ARCEP's plan).
var overseas = map[string]string{
	"590": "590", "690": "590", "691": "590", "594": "594", "694": "594", "596": "596", "696": "596", "697": "596",
	"262": "262", "263": "262", "269": "262", "639": "262", "692": "262", "693": "262", "508": "508", "708": "508",
}

// geographic are the two digits after the initial 0 of mainland numbers (ARCEP's plan): those in use for 1 to 5 and 7,
// and all of 6, 8 and 9.
var geographic = regexp.MustCompile(`^(?:1\d|2[0-57-9]|26[014-8]|3\d|4[1-9]|5[0-8]|59[1-35-9]|6\d|7[3-9]|8\d|9\d)`)

// shortNumber matches the French numbers of two to six digits: emergency, services of 10 and 3x, and 118.
var shortNumber = regexp.MustCompile(`^(?:1[578]|11[2459]|19[167]|10\d\d|3\d{3}|118\d{3})$`)

// Phones finds the telephone numbers in a text, in order and without repeats. Numbers are in E.164, such as +33466651234; French
// short ones are their digits, such as 3949. region is the ISO code of the country in which numbers without a code are dialled; ""
// is France. A zero that a spreadsheet dropped is put back if the nine digits are a French number. rest is the text that is neither a number
// nor a word such as Tél.: an extension, a remark, the number of a fax, digits that are not a number.
func Phones(s, region string) (numbers []string, rest string) {
	if len(s) > maxPhones {
		return nil, strings.TrimSpace(s)
	}
	p := phoneParser{region: strings.ToUpper(region), takesShort: true}
	p.parse(s)
	if strings.ContainsFunc(p.restText(), unicode.IsLetter) { // 1001 is not a number in the name of a shop
		p = phoneParser{region: p.region}
		p.parse(s)
	}
	return p.numbers, p.restText()
}

// maxPhones is the most bytes of a text of telephone numbers. A longer one is a description.
const maxPhones = 1000

var (
	// slashedNumber matches a number whose pairs of digits are separated by slashes or commas, which usually separate numbers.
	slashedNumber = regexp.MustCompile(`\b0\d(?:[/,]\d\d){4}\b`)
	floatNumber   = regexp.MustCompile(`^\s*(\d{9,15})[.,]0\s*$`)
	// phonePart matches a run of digits and the signs that stand in numbers, or a word, or a single other sign.
	phonePart = regexp.MustCompile(`(?:[+(]\s*)*\d[\d\s.()+·_\-]*|[\p{L}°]+\.?|[^\s]|\s+`)
)

// preparePhones makes the signs of a text plain: spaces, strokes, and slashes within a number.
func preparePhones(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\r':
			return ';'
		case unicode.IsSpace(r):
			return ' '
		case r == '–', r == '—', r == '‑', r == '‐', r == '−':
			return '-'
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
	if m := floatNumber.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return slashedNumber.ReplaceAllStringFunc(s, func(n string) string { return strings.NewReplacer("/", " ", ",", " ").Replace(n) })
}

// splitPhones splits a text into runs of digits, words and signs.
func splitPhones(s string) []string { return phonePart.FindAllString(s, -1) }

// phoneParser collects the numbers of a text and the rest.
type phoneParser struct {
	region     string
	takesShort bool
	numbers    []string
	rest       []string
	isFax      bool // the word before marks the number of a fax
	isExtra    bool // the word before marks digits as an extension
}

// parse reads all parts of a text.
func (p *phoneParser) parse(s string) {
	for _, part := range splitPhones(preparePhones(s)) {
		p.parsePart(part)
	}
}

// phoneWords are words that announce a number. They are not part of the rest.
var phoneWords = wordSet(`tel tél t téléphone telephone téléphones phone fixe port portable mobile mob gsm m cell ou et or and
	n n° no num numéro numero appel vert standard accueil`)

// faxWords and extensionWords mark the following digits as something other than a telephone number.
var (
	faxWords       = wordSet("fax télécopie telecopie télécopieur telecopieur f")
	extensionWords = wordSet("poste ext extension p x postes")
)

// parsePart reads a run of digits, a word, or a sign.
func (p *phoneParser) parsePart(part string) {
	word := strings.TrimSuffix(strings.ToLower(part), ".")
	switch {
	case hasDigit(part):
		p.parseRun(part)
	case faxWords[word]:
		p.isFax = true
		p.addRest(part)
	case extensionWords[word]:
		p.isExtra = true
		p.addRest(part)
	case phoneWords[word]:
		p.isFax, p.isExtra = false, false
	case strings.TrimSpace(part) == "" || strings.Contains(":;,/|.-&()+", part):
		p.addSeparator(part)
	default:
		p.isFax, p.isExtra = false, false
		p.addRest(part)
	}
}

// addRest adds a part that is not a number to the rest.
func (p *phoneParser) addRest(part string) { p.rest = append(p.rest, part) }

// addSeparator keeps a sign between two pieces of the rest, and drops it elsewhere.
func (p *phoneParser) addSeparator(sign string) {
	if len(p.rest) > 0 {
		p.rest = append(p.rest, sign)
	}
}

// restText is the rest as a text without the separators around it.
func (p *phoneParser) restText() string {
	text := strings.ReplaceAll(strings.Join(strings.Fields(strings.Join(p.rest, "")), " "), "( )", "")
	text = strings.Trim(strings.ReplaceAll(text, "()", ""), ":;,/|.-& ")
	if !strings.Contains(text, "(") {
		text = strings.Trim(text, ") ")
	}
	return text
}

// parseRun reads the numbers of a run of digits and signs. Trailing digits make the whole run doubtful, unless a
// slash or a parenthesis separates them.
func (p *phoneParser) parseRun(run string) {
	found, left := []string(nil), run
	for hasDigit(left) && !p.isFax && !p.isExtra {
		number, after, ok := p.readNumber(left)
		if !ok {
			break
		}
		found, left = append(found, number), after
	}
	p.isFax, p.isExtra = false, false
	if hasDigit(left) && !strings.HasPrefix(strings.TrimLeft(left, " "), "-") && !strings.Contains(left, "(") {
		p.addRest(run)
		return
	}
	for _, n := range found {
		if !slices.Contains(p.numbers, n) {
			p.numbers = append(p.numbers, n)
		}
	}
	if hasDigit(left) || strings.HasSuffix(strings.TrimRight(left, " "), "(") {
		p.addRest(left)
	} else {
		p.addSeparator(" ")
	}
}

// hasDigit reports whether a text has a digit.
func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// readNumber reads the number at the beginning of a run, and returns the rest.
func (p *phoneParser) readNumber(run string) (number, after string, ok bool) {
	run = strings.TrimLeft(run, " .()-_·")
	isFrench := p.region == "" || frenchRegions[p.region]
	switch {
	case strings.HasPrefix(run, "+"):
		return readInternational(run[1:])
	case strings.HasPrefix(onlyDigits(run), "00"):
		_, after = cutDigits(run, 2)
		return readInternational(after)
	case !isFrench:
		return readHome(run, dialPlans[p.region])
	}
	return p.readFrench(run)
}

// readFrench reads a number as it is dialled in France: ten digits from 0 on, nine that lost their 0, eleven from 33 on, or a short one.
func (p *phoneParser) readFrench(run string) (number, after string, ok bool) {
	own, _, _ := strings.Cut(run, "+")
	digits := onlyDigits(own)
	if strings.HasPrefix(digits, "0") {
		ten, after := cutDigits(run, 10)
		if len(ten) < 10 || beginsWithDigit(after) {
			return "", run, false
		}
		number, ok = frenchNumber(ten[1:])
		return number, after, ok
	}
	for _, group := range []string{leadingDigits(run), digits} {
		_, after = cutDigits(run, len(group))
		switch {
		case len(group) == 9:
			number, ok = frenchNumber(group)
		case len(group) >= 11 && hasFrenchCode(group):
			number, _, ok = readInternational(group)
		case p.takesShort && len(group) == len(digits) && shortNumber.MatchString(group):
			number, ok = group, true
		}
		if ok {
			return number, after, true
		}
	}
	return "", run, false
}

// hasFrenchCode reports whether digits begin with the code of France or a territory, and have the length of a number with it.
func hasFrenchCode(digits string) bool {
	if strings.HasPrefix(digits, "33") {
		return len(digits) == 11 || len(digits) == 12 && digits[2] == '0'
	}
	return len(digits) == 12 && overseas[digits[3:6]] == digits[:3]
}

// readHome reads a number as it is dialled at home in another country.
func readHome(run string, plan dialPlan) (number, after string, ok bool) {
	own, _, _ := strings.Cut(run, "+")
	digits := onlyDigits(own)
	national := strings.TrimPrefix(digits, plan.trunk)
	if plan.code == "" || len(national) < plan.min || len(national) > plan.max || plan.trunk != "" && national == digits {
		return "", run, false
	}
	_, after = cutDigits(run, len(digits))
	return "+" + plan.code + national, after, true
}

// readInternational reads a number from the code of its country on. A 0 in parentheses after the code is dropped, and so is a 0 that
// is dialled only at home. The number of a country without a plan here extends to the end of the run.
func readInternational(run string) (number, after string, ok bool) {
	own, _, _ := strings.Cut(run, "+")
	code := countryCodeOf(onlyDigits(own))
	if code == "" {
		return "", run, false
	}
	_, rest := cutDigits(run, len(code))
	trimmed := strings.TrimLeft(rest, " .-)")
	if inner, hasZero := strings.CutPrefix(strings.ReplaceAll(trimmed, " ", ""), "(0)"); hasZero && inner != "" {
		rest = trimmed[strings.Index(trimmed, "0")+1:]
	}
	plan := planOf(code)
	digits := onlyDigits(rest[:len(rest)-len(run)+len(own)])
	zero := ""
	if plan.trunk != "" && strings.HasPrefix(digits, plan.trunk) {
		zero, digits = plan.trunk, digits[1:]
	}
	if frenchCodes[code] {
		return readFrenchCode(code, zero, digits, rest)
	}
	if len(digits) < plan.min || len(digits) > plan.max || len(code)+len(digits) > 15 {
		return "", run, false
	}
	_, after = cutDigits(rest, len(zero)+len(digits))
	return "+" + code + digits, after, true
}

// readFrenchCode reads the number after the code of France or one of its territories: nine digits, or six of Saint-Pierre. Six digits of
// another territory are a number from before 1996, when the code was not yet a part of it; it is still valid with the code put twice.
func readFrenchCode(code, zero, digits, rest string) (number, after string, ok bool) {
	length := 9
	if code != "33" && len(digits) == 6 {
		length = 6
	}
	if len(digits) < length {
		return "", rest, false
	}
	national := digits[:length]
	_, after = cutDigits(rest, len(zero)+length)
	if beginsWithDigit(after) {
		return "", rest, false
	}
	switch {
	case code == "33":
		number, ok = frenchNumber(national)
		return number, after, ok
	case length == 6 && code != "508":
		national = code + national
	}
	isOwn := length == 6 || overseas[national[:3]] == code || national[0] == '9' || national[0] == '8'
	return "+" + code + national, after, isOwn
}

// frenchNumber is the E.164 number of the nine digits that follow a 0 at home. Those of the territories have codes of their own.
func frenchNumber(national string) (string, bool) {
	if strings.Trim(national, national[:1]) == "" {
		return "", false // 111111111 only fills a field
	}
	switch code := overseas[national[:3]]; {
	case code == "508" && national[0] == '5':
		return "+508" + national[3:], true
	case code != "":
		return "+" + code + national, true
	}
	return "+33" + national, geographic.MatchString(national)
}

// countryCodeOf is the country code at the beginning of digits, "" if there is none.
func countryCodeOf(digits string) string {
	for n := 1; n <= 2 && n <= len(digits); n++ {
		if countryCodes[digits[:n]] {
			return digits[:n]
		}
	}
	if len(digits) < 3 || digits[0] == '0' {
		return ""
	}
	return digits[:3]
}

// planOf is the plan of a country code. Numbers of countries without a plan have four to thirteen digits.
func planOf(code string) dialPlan {
	if frenchCodes[code] {
		return dialPlan{code, "0", 6, 9}
	}
	for _, p := range dialPlans {
		if p.code == code {
			return p
		}
	}
	return dialPlan{code, "", 4, 13}
}

// onlyDigits is the digits of a text.
func onlyDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, s)
}

// cutDigits cuts a text after its first n digits.
func cutDigits(s string, n int) (digits, after string) {
	end := 0
	for ; end < len(s) && n > 0; end++ {
		if '0' <= s[end] && s[end] <= '9' {
			n--
		}
	}
	return onlyDigits(s[:end]), s[end:]
}

// leadingDigits is the digits that a text begins with.
func leadingDigits(s string) string { return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))] }

// beginsWithDigit reports whether a digit comes next, so that the number before it does not end there.
func beginsWithDigit(s string) bool { return s != "" && isDigit(s[0]) }
