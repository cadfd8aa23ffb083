package chart

import (
	"fmt"
	"html"
	"math"
	"unicode/utf8"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// box is where some text is, or the rectangle around it if it is slanted.
type box struct{ x, y, width, height int }

func (b box) meets(o box) bool {
	return b.x < o.x+o.width && o.x < b.x+b.width && b.y < o.y+o.height && o.y < b.y+b.height
}

// textWidth is about how wide a text is.
func textWidth(text string, size int) int { return utf8.RuneCountInString(text) * size * 11 / 20 }

// arrow draws a message. One that is lost is drawn to where it would have arrived, and crossed
// out there. One from an end of a ring to the other leaves the picture at one side and enters
// at the other.
func (p *picture) arrow(s step) string {
	x1, y1, x2, y2 := p.x[s.from], p.y[s.sent], p.x[s.to], p.y[s.ends()]
	style, mark := `stroke="#345" marker-end="url(#head)"`, ""
	if s.kind == sim.Lost {
		style, mark = `stroke="#c00" stroke-dasharray="4 3"`, cross(x2, y2, "#c00")
	}
	ring := p.run.Ring
	switch first, last := ring[0], ring[len(ring)-1]; {
	case x1 == x2:
		return fmt.Sprintf(`<path d="M%d,%d C%d,%d %d,%d %d,%d" fill="none" %s/>`,
			x1, y1, x1+40, y1, x1+40, y2, x2, y2, style) + p.label(s, x1, y1, x1+60, y2) + mark
	case p.run.Round && len(ring) > 2 && s.from == last && s.to == first:
		return p.round(s, x1, y1, x2, y2, svgColumn/2, style) + mark
	case p.run.Round && len(ring) > 2 && s.from == first && s.to == last:
		return p.round(s, x1, y1, x2, y2, -svgColumn/2, style) + mark
	}
	return fmt.Sprintf(`<line x1="%d" y1="%d" x2="%d" y2="%d" %s/>`, x1, y1, x2, y2, style) +
		p.label(s, x1, y1, x2, y2) + mark
}

// round draws both ends of an arrow that goes round the ring.
func (p *picture) round(s step, x1, y1, x2, y2, out int, style string) string {
	middle := (y1 + y2) / 2
	return fmt.Sprintf(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#345" stroke-dasharray="1 0"/>`+
		`<line x1="%d" y1="%d" x2="%d" y2="%d" %s/>`, x1, y1, x1+out, middle, x2-out, middle, x2, y2, style) +
		p.label(s, x2-out, middle, x2, y2)
}

// label writes a message's text along its arrow, at the first place where no text is yet,
// beginning near the head, where the arrows of one sender are apart. If there is none, it takes
// the place with the fewest collisions.
func (p *picture) label(s step, x1, y1, x2, y2 int) string {
	const size = 9
	angle := math.Atan2(float64(y2-y1), float64(x2-x1)) * 180 / math.Pi
	if x2 < x1 {
		angle += 180 // keep the text upright
	}
	width := textWidth(s.text, size)
	best, fewest := []box{}, math.MaxInt
	var lx, ly, side int
places:
	for _, along := range []int{60, 70, 50, 40, 80, 30, 20, 88} {
		for _, above := range []int{-3, 10} {
			x, y := x1+(x2-x1)*along/100, y1+(y2-y1)*along/100
			row := slanted(x, y+above, width, angle)
			if meets := p.meets(row); meets < fewest {
				best, fewest, lx, ly, side = row, meets, x, y, above
			}
			if fewest == 0 {
				break places
			}
		}
	}
	if fewest > 0 {
		p.full++
	}
	p.boxes = append(p.boxes, best...)
	return fmt.Sprintf(`<text class="label" transform="translate(%d %d) rotate(%.1f)" y="%d" text-anchor="middle" `+
		`font-size="%d" fill="#345" stroke="white" stroke-width="2" paint-order="stroke">%s</text>`,
		lx, ly, angle, side, size, html.EscapeString(s.text))
}

// slanted is the row of small boxes that a slanted text fills, around the middle of its
// base line.
func slanted(x, y, width int, angle float64) (row []box) {
	const piece = 10
	sin, cos := math.Sincos(angle * math.Pi / 180)
	for at := -width / 2; at < width/2; at += piece {
		row = append(row, box{x + int(float64(at)*cos), y - 8 + int(float64(at)*sin), piece, 9})
	}
	return row
}

// meets counts the boxes of the row that already have text.
func (p *picture) meets(row []box) (count int) {
	for _, b := range row {
		for _, o := range p.boxes {
			if b.meets(o) {
				count++
				break
			}
		}
	}
	return count
}
