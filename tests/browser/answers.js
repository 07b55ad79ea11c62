// Finds which of a reader's questions the view of an investigation does not answer within the window: what is happening,
// what is the cause and how sure is that, what to do next. Elements say with data-answer what they answer.
() => {
  if (document.querySelector(".popover")) return []; // the reader acts
  const within = (element) => {
    const { top, bottom, left, right, width, height } = element.getBoundingClientRect();
    return width > 0 && height > 0 && top >= 0 && bottom <= innerHeight && left >= 0 && right <= innerWidth && element.innerText.trim() !== "";
  };
  const questions = ["now", "cause", "next"];
  // Only a finding has a confidence; before it, the likely cause says that there is none.
  if (document.querySelector(".finding-summary")) questions.push("confidence");
  return questions.filter((question) => ![...document.querySelectorAll(`[data-answer~=${question}]`)].some(within));
}
