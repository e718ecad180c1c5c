/* Runs at the end of a page of weir report, in a frame of some width; tells the parent what is wrong. */
"use strict";
{
	const faults = [...window.errors];
	const check = (good, text) => good || faults.push(text);
	const all = selector => [...document.querySelectorAll(selector)];
	const pixel = document.createElement("canvas").getContext("2d", {willReadFrequently: true});

	/* The colour as the browser paints it over another one. */
	const painted = (color, below) => {
		pixel.canvas.width = pixel.canvas.height = 1;
		pixel.fillStyle = `rgb(${below.join(",")})`;
		pixel.fillRect(0, 0, 1, 1);
		pixel.fillStyle = color;
		pixel.fillRect(0, 0, 1, 1);
		return [...pixel.getImageData(0, 0, 1, 1).data].slice(0, 3);
	};
	const background = element => element ? painted(getComputedStyle(element).backgroundColor, background(element.parentElement)) : [255, 255, 255];
	const luminance = color => color.map(value => value / 255).map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4).reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
	const contrast = (a, b) => {
		const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
		return (high + 0.05) / (low + 0.05);
	};

	/* Boxes in the coordinates of the graph's drawing. */
	const overlaps = () => {
		const boxes = all(".node").map(node => {
			const at = node.transform.baseVal.consolidate().matrix, box = node.querySelector(".box");
			return {name: node.dataset.name, x: at.e, y: at.f, width: box.width.baseVal.value, height: box.height.baseVal.value};
		}).sort((a, b) => a.x - b.x);
		for (let i = 0; i < boxes.length; i++)
			for (let k = i + 1; k < boxes.length && boxes[k].x < boxes[i].x + boxes[i].width; k++)
				if (boxes[k].y < boxes[i].y + boxes[i].height && boxes[i].y < boxes[k].y + boxes[k].height)
					return `${boxes[i].name} and ${boxes[k].name}`;
		return null;
	};

	const texts = () => {
		const seen = new Set();
		for (const element of all("body *")) {
			const own = [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
			if (!own || element.closest("script, style, noscript, title") || !element.getClientRects().length)
				continue;
			const style = getComputedStyle(element), drawn = element instanceof SVGElement;
			const box = drawn && element.closest(".node") && (element.matches(".badge") ? element.previousElementSibling : element.closest(".node").querySelector(".box"));
			const below = box ? painted(getComputedStyle(box).fill, background(element.closest(".graph"))) : drawn && element.closest(".link") ? painted(getComputedStyle(element.closest(".link").querySelector("rect")).fill, [255, 255, 255]) : background(drawn ? element.closest("svg").parentElement : element);
			const key = `${element.tagName}.${element.getAttribute("class")} ${style.color} ${style.fill} ${below}`;
			if (seen.has(key))
				continue;
			seen.add(key);
			const color = painted(drawn ? style.fill : style.color, below), found = contrast(color, below);
			check(found >= 4.5, `contrast ${found.toFixed(1)} of ${element.tagName}.${element.getAttribute("class")} '${element.textContent.slice(0, 20)}'`);
		}
	};

	const wanted = window.wanted;
	check(!window.hacked, "markup of a name was executed");
	check(document.documentElement.scrollWidth <= innerWidth, `the page is ${document.documentElement.scrollWidth} wide`);
	check(all(".findings li:not(.none)").length === wanted.findings, "the findings");
	check(all(".findings li.none").length === (wanted.findings ? 0 : 1), "the line of a balanced run");
	check(all(".findings")[0].getBoundingClientRect().top < 200, "the findings are not on the first screen");
	check(wanted.collapsed || all(".node").length === wanted.entities, `${all(".node").length} boxes`);
	check(!overlaps(), `boxes overlap: ${overlaps()}`);
	texts();
	if (wanted.collapsed) {
		check(all(".node").length < wanted.entities, "nothing is collapsed");
		all("#graph button[aria-pressed=true]")[0].click();
		check(all(".node").length === wanted.entities, "not all are shown");
		check(!overlaps(), `boxes overlap: ${overlaps()}`);
	}
	check(all(".node").every(node => node.tabIndex === 0 && node.getAttribute("aria-label")), "a box cannot be reached by keyboard");
	all(".node")[0].dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true}));
	check(all(".chosen-entity .chart").length > 0, "Enter on a box shows no histogram");
	check(Boolean(all("#frames")[0]) === wanted.frames, "the slowest frames");
	if (wanted.frames) {
		const before = all("#frames .way")[0].textContent;
		all("#frames .frames button")[all("#frames .frames button").length - 1].click();
		check(all("#frames .way tbody tr").length > 0 && (wanted.entities === 1 || all("#frames .way")[0].textContent !== before), "another frame is not shown");
	}
	check(all(".chart:not(.timeline) rect").every(bar => bar.height.baseVal.value >= 1.5), "a bar cannot be seen");
	check(all(".why").every(why => why.scrollWidth <= why.clientWidth + 1), "a wait is cut");
	const heading = all("#times th button")[0];
	heading.click();
	const names = () => all("#times tbody td:first-child").map(cell => cell.textContent);
	check(names().join() === [...names()].sort().join(), "a click on a heading does not sort");
	const search = all("input[type=search]")[0], name = all("#times tbody td:first-child")[0].textContent;
	search.value = name;
	search.dispatchEvent(new Event("input"));
	check(names().length && names().every(found => found.includes(name)), "the search does not filter");
	check(all(".node:not(.dim)").every(node => wanted.collapsed || node.dataset.name.includes(name)), "the search does not mark boxes");
	document.title = faults.length ? "bad" : "good";
	parent.postMessage({page: wanted.page, width: innerWidth, dark: matchMedia("(prefers-color-scheme: dark)").matches, faults}, "*");
}
